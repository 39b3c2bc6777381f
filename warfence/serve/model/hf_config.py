"""A Hugging Face ``config.json`` as a ``ModelConfig``.

Source of the field meanings: ``transformers`` 4.57 and 5.x, the configurations of the architectures below.
``layer_types`` is honoured wherever it stands. ``transformers`` itself does not read it in Llama and Mistral and tells users
so; a directory that mixes full and sliding layers should therefore name ``MinistralForCausalLM``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from warfence.core.errors import InputError
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.fields import number, token_ids, whole
from warfence.serve.model.rope import read_rope

LAYER_TYPES = ("full_attention", "sliding_attention")
_QKV, _ATTENTION = ("bq", "bk", "bv"), ("bq", "bk", "bv", "bo")
_MLP, _NORMS = ("b_gate", "b_up", "b_down"), ("q_norm", "k_norm")


@dataclass(frozen=True, slots=True)
class Architecture:
    """What an architecture assumes where its config is silent, and which fields it reads.

    windowed: sliding layers by ``sliding_window`` alone. switched: only where ``use_sliding_window`` is set, from
    ``max_window_layers`` on. always: weights that every layer has beside the common ones. biased: flags that add more.
    """

    windowed: bool = False
    switched: bool = False
    window: int | None = None
    kv_heads: int | None = None  # None: as many as heads
    head_dim: int | None = None  # None: the hidden size over the heads
    eos: int | None = None
    always: tuple[str, ...] = ()
    biased: tuple[str, ...] = ()


ARCHITECTURES = {
    "LlamaForCausalLM": Architecture(eos=2, biased=("attention_bias", "mlp_bias")),
    "MistralForCausalLM": Architecture(windowed=True, window=4096, kv_heads=8, eos=2),
    "MinistralForCausalLM": Architecture(windowed=True, window=4096, kv_heads=8, eos=2),
    "Qwen2ForCausalLM": Architecture(switched=True, window=4096, kv_heads=32, always=_QKV),
    "Qwen3ForCausalLM": Architecture(
        switched=True, window=4096, kv_heads=32, head_dim=128, always=_NORMS, biased=("attention_bias",)
    ),
}
_BIASES = {"attention_bias": _ATTENTION, "mlp_bias": _MLP}


def architecture_of(raw: Mapping[str, Any], name: str) -> str:
    """The one architecture that the file names; ``InputError`` where it is none that is served."""
    seen = raw.get("architectures")
    if isinstance(seen, list) and len(seen) == 1 and isinstance(seen[0], str) and seen[0] in ARCHITECTURES:
        return seen[0]
    raise InputError(f"model '{name}': architectures is {seen!r}; allowed is one of {', '.join(ARCHITECTURES)}")


def from_hf(raw: Mapping[str, Any], name: str = "model") -> ModelConfig:
    """Turn a parsed ``config.json`` into a ``ModelConfig``.

    ``name`` is used in messages and when the file carries no name of its own. Raises ``InputError`` for whatever would
    make the forward differ from ``transformers``: it names what was seen and what is allowed.
    """
    kind = ARCHITECTURES[architecture_of(raw, name)]
    _refuse_unsupported(raw, name, kind)
    layers, heads, hidden = (
        whole(raw, key, name) for key in ("num_hidden_layers", "num_attention_heads", "hidden_size")
    )
    context = whole(raw, "max_position_embeddings", name)
    head_dim = _head_dim(raw, name, kind, hidden // max(heads, 1))
    sliding, window = _windows(raw, name, kind, layers, context)
    theta, scaled = read_rope(raw, name, head_dim, context)
    extras = [extra for flag in kind.biased if raw.get(flag) for extra in _BIASES[flag]]
    return ModelConfig(
        name=name,
        vocab=whole(raw, "vocab_size", name),
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=whole(raw, "num_key_value_heads", name, _kv_heads(raw, kind, heads)),
        head_dim=head_dim,
        ffn=whole(raw, "intermediate_size", name),
        sliding=sliding,
        window=window,
        context=context,
        rope_theta=theta,
        norm_eps=number(raw, "rms_norm_eps", name, 1e-6),
        eos_ids=token_ids(raw.get("eos_token_id", kind.eos), "eos_token_id", name),
        bos_id=next(iter(token_ids(raw.get("bos_token_id"), "bos_token_id", name)), None),
        extras=(*kind.always, *extras),
        scaled_rope=scaled,
    )


def _kv_heads(raw: Mapping[str, Any], kind: Architecture, heads: int) -> int:
    """A null means one for each head; only a field that is absent takes the architecture's own number."""
    return heads if "num_key_value_heads" in raw else kind.kv_heads or heads


def _head_dim(raw: Mapping[str, Any], name: str, kind: Architecture, quotient: int) -> int:
    return whole(raw, "head_dim", name, quotient if "head_dim" in raw else kind.head_dim or quotient)


def _refuse_unsupported(raw: Mapping[str, Any], name: str, kind: Architecture) -> None:
    if (act := raw.get("hidden_act", "silu")) != "silu":
        raise InputError(f"model '{name}': hidden_act is {act!r}; allowed is 'silu'")
    for flag in _BIASES:
        if raw.get(flag) and flag not in kind.biased:
            raise InputError(
                f"model '{name}': {flag} is {raw[flag]!r}; this architecture has none, so it must be false"
            )
    if (quantised := raw.get("quantization_config")) is not None:
        method = quantised.get("quant_method") if isinstance(quantised, Mapping) else None
        raise InputError(
            f"model '{name}': quantised weights ({method or 'of an unnamed method'}) are not supported, scales or not; use a"
            " float32, float16 or bfloat16 copy"
        )


def _windows(
    raw: Mapping[str, Any], name: str, kind: Architecture, layers: int, context: int
) -> tuple[tuple[bool, ...], int | None]:
    """Which layers slide, and over how many keys. A window that no layer uses, or that holds the whole context, is none."""
    seen = raw.get("sliding_window", kind.window)
    if kind.switched and not raw.get("use_sliding_window"):
        seen = None
    window = None if seen is None else whole({"sliding_window": seen}, "sliding_window", name)
    types = raw.get("layer_types")
    if types is not None:
        if not isinstance(types, list) or any(one not in LAYER_TYPES for one in types):
            raise InputError(f"model '{name}': layer_types is {types!r}; allowed is a list of {', '.join(LAYER_TYPES)}")
        sliding = tuple(one == "sliding_attention" for one in types)
    elif kind.switched:
        first = whole(raw, "max_window_layers", name, 28)
        sliding = tuple(window is not None and i >= first for i in range(layers))
    elif window is not None and window < context and not kind.windowed:
        raise InputError(
            f"model '{name}': sliding_window is {window}, which its architecture ignores; add layer_types, or remove"
            " sliding_window"
        )
    else:
        sliding = (window is not None,) * layers
    if window is not None and window >= context:
        return (False,) * len(sliding), None
    return sliding, window if any(sliding) else None
