"""The sizes of a decoder, read from a Hugging Face ``config.json``.

Source of the field meanings: ``transformers`` 4.57 and 5.x, ``LlamaConfig``, ``MistralConfig`` and ``MinistralConfig``.
``layer_types`` is honoured wherever it stands. ``transformers`` itself reads it in Ministral only and tells users of
Mistral so; a directory that mixes full and sliding layers should therefore name ``MinistralForCausalLM``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from warfence.core.errors import InputError

ARCHITECTURES = ("LlamaForCausalLM", "MistralForCausalLM", "MinistralForCausalLM")
LAYER_TYPES = ("full_attention", "sliding_attention")
_WINDOWED = ("MistralForCausalLM", "MinistralForCausalLM")
_HF_DEFAULT_WINDOW = 4096  # what transformers assumes when a Mistral config does not say


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes of one Llama-style decoder.

    ``sliding[i]`` says whether layer ``i`` has a window. A sliding layer at query position ``i`` sees the keys ``j``
    with ``i - window < j <= i``: ``window`` keys, the query's own included. ``context``: the longest
    sequence. ``bos_id`` is information only: whether a prompt gets one is decided by ``tokenizer.json``.

    Raises ``InputError`` when the sizes do not fit each other.
    """

    name: str
    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    sliding: tuple[bool, ...]
    window: int | None
    context: int
    rope_theta: float
    norm_eps: float
    eos_ids: tuple[int, ...]
    bos_id: int | None

    def __post_init__(self) -> None:
        for field in ("vocab", "hidden", "layers", "heads", "kv_heads", "head_dim", "ffn", "context"):
            if getattr(self, field) < 1:
                raise InputError(f"model '{self.name}': {field} is {getattr(self, field)}; it must be at least 1")
        if self.heads % self.kv_heads:
            raise InputError(f"model '{self.name}': {self.heads} heads are not a multiple of {self.kv_heads} kv_heads")
        if self.head_dim % 2:
            raise InputError(f"model '{self.name}': head_dim is {self.head_dim}; rotary embedding needs an even number")
        if len(self.sliding) != self.layers:
            raise InputError(f"model '{self.name}': {len(self.sliding)} layer types for {self.layers} layers")
        if any(self.sliding) and self.window is None:
            raise InputError(f"model '{self.name}': has sliding layers but no window; set sliding_window")
        if self.window is not None and not 1 <= self.window <= self.context:
            raise InputError(
                f"model '{self.name}': sliding_window is {self.window}; allowed are 1 to the context, {self.context}"
                " (for no window set sliding_window to null)"
            )
        for token in self.eos_ids:
            if not 0 <= token < self.vocab:
                raise InputError(f"model '{self.name}': eos token {token} is outside the vocabulary of {self.vocab}")


def from_hf(raw: Mapping[str, Any], name: str = "model") -> ModelConfig:
    """Turn a parsed ``config.json`` into a ``ModelConfig``.

    ``name`` is used in messages and when the file carries no name of its own. Raises ``InputError`` for whatever would
    make the forward differ from ``transformers``: it names what was seen and what is allowed.
    """
    architecture = _architecture(raw, name)
    _refuse_unsupported(raw, name)
    layers, heads, hidden = (
        _int(raw, key, name) for key in ("num_hidden_layers", "num_attention_heads", "hidden_size")
    )
    sliding, window = _windows(raw, name, architecture, layers)
    return ModelConfig(
        name=name,
        vocab=_int(raw, "vocab_size", name),
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=_int(raw, "num_key_value_heads", name, heads),
        head_dim=_int(raw, "head_dim", name, hidden // max(heads, 1)),
        ffn=_int(raw, "intermediate_size", name),
        sliding=sliding,
        window=window,
        context=_int(raw, "max_position_embeddings", name),
        rope_theta=_rope_theta(raw, name),
        norm_eps=_float(raw, "rms_norm_eps", name, 1e-6),
        eos_ids=token_ids(raw.get("eos_token_id"), "eos_token_id", name),
        bos_id=next(iter(token_ids(raw.get("bos_token_id"), "bos_token_id", name)), None),
    )


def token_ids(value: object, key: str, name: str) -> tuple[int, ...]:
    """Read a token id field: an integer, a list of integers, or null (none)."""
    items = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        raise InputError(f"model '{name}': {key} is {value!r}; allowed are an integer, a list of integers, or null")
    return tuple(items)


def _architecture(raw: Mapping[str, Any], name: str) -> str:
    seen = raw.get("architectures")
    if isinstance(seen, list) and len(seen) == 1 and seen[0] in ARCHITECTURES:
        return cast("str", seen[0])
    raise InputError(f"model '{name}': architectures is {seen!r}; allowed is one of {', '.join(ARCHITECTURES)}")


def _refuse_unsupported(raw: Mapping[str, Any], name: str) -> None:
    if (act := raw.get("hidden_act", "silu")) != "silu":
        raise InputError(f"model '{name}': hidden_act is {act!r}; allowed is 'silu'")
    for key in ("attention_bias", "mlp_bias"):
        if raw.get(key):
            raise InputError(f"model '{name}': {key} is {raw[key]!r}; allowed is false")
    if raw.get("quantization_config") is not None:
        raise InputError(
            f"model '{name}': quantised weights are not supported; use a float32, float16 or bfloat16 copy"
        )


def _rope_theta(raw: Mapping[str, Any], name: str) -> float:
    """Find the rotary base in the old form (``rope_theta``, ``rope_scaling``) or the new one (``rope_parameters``)."""
    for key in ("rope_scaling", "rope_parameters"):
        value = raw.get(key)
        if value is None:
            continue
        if not isinstance(value, Mapping):
            raise InputError(f"model '{name}': {key} is {value!r}; allowed is an object or null")
        kind = value.get("rope_type", value.get("type", "default"))
        plain = not any(isinstance(part, Mapping) for part in value.values())
        if kind != "default" or not plain or value.get("partial_rotary_factor", 1.0) != 1.0:
            raise InputError(
                f"model '{name}': {key} is {dict(value)!r}; allowed is rope_type 'default', all dimensions"
            )
    source = raw.get("rope_parameters") or {}
    return _float(source if "rope_theta" in source else raw, "rope_theta", name, 10000.0)


def _windows(raw: Mapping[str, Any], name: str, architecture: str, layers: int) -> tuple[tuple[bool, ...], int | None]:
    """Which layers slide, and over how many keys. The window is dropped where no layer uses it."""
    windowed = architecture in _WINDOWED
    seen = raw.get("sliding_window", _HF_DEFAULT_WINDOW if windowed else None)
    window = None if seen is None else _int({"sliding_window": seen}, "sliding_window", name)
    types = raw.get("layer_types")
    if types is None:
        if window is not None and not windowed:
            raise InputError(
                f"model '{name}': sliding_window is {window}, which {architecture} ignores;"
                " add layer_types, or remove sliding_window"
            )
        return (window is not None,) * layers, window
    if not isinstance(types, list) or any(kind not in LAYER_TYPES for kind in types):
        raise InputError(f"model '{name}': layer_types is {types!r}; allowed is a list of {', '.join(LAYER_TYPES)}")
    sliding = tuple(kind == "sliding_attention" for kind in types)
    return sliding, window if any(sliding) else None


def _int(raw: Mapping[str, Any], key: str, name: str, default: int | None = None) -> int:
    value = raw.get(key)
    if value is None:
        value = default
    if value is None:
        raise InputError(f"model '{name}': config.json has no '{key}'; it needs an integer there")
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"model '{name}': {key} is {value!r}; it must be an integer")
    return value


def _float(raw: Mapping[str, Any], key: str, name: str, default: float) -> float:
    value = raw.get(key)
    if value is None:
        value = default
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise InputError(f"model '{name}': {key} is {value!r}; it must be a positive number")
    return float(value)
