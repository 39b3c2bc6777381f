"""The sizes of a decoder. ``warfence.serve.model.hf_config`` reads them from a Hugging Face ``config.json``."""

from __future__ import annotations

from dataclasses import dataclass

from warfence.core.errors import InputError
from warfence.host.rope import Rope, plain


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes of one Llama-style decoder.

    ``sliding[i]`` says whether layer ``i`` has a window. A sliding layer at query position ``i`` sees the keys ``j``
    with ``i - window < j <= i``: ``window`` keys, the query's own included. ``context``: the longest
    sequence. ``bos_id`` is information only: whether a prompt gets one is decided by ``tokenizer.json``. ``extras``: weights of
    a layer beside those that every one has, by the names of ``warfence.serve.model.weights.EXTRA_WEIGHTS`` (biases, the norms
    of query and key). ``scaled_rope``: the rotary embedding where it is not the plain one of ``rope_theta``.

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
    extras: tuple[str, ...] = ()
    scaled_rope: Rope | None = None

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

    @property
    def rope(self) -> Rope:
        """The rotary embedding of every layer."""
        return self.scaled_rope or plain(self.head_dim, self.rope_theta)
