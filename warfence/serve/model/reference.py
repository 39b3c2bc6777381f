"""The forward in plain numpy: float32, no pages, no lanes, no backend. What every backend's text is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from warfence.core.errors import InputError
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.weights import Weights
from warfence.serve.sampling import SamplingParams, choose, uniform

if TYPE_CHECKING:
    from warfence.serve.model import Model

F32Array = NDArray[np.float32]
_QKV = ("wq", "wk", "wv")
Cache = list[tuple[F32Array, F32Array]]  # one (keys, values) a layer, each [positions so far, kv_heads, head_dim]


@dataclass(frozen=True, slots=True)
class Generated:
    """The new tokens of one request (a closing eos included) and, for each, the margin of ``sampling.choose``."""

    tokens: list[int]
    margins: list[float]


class ReferenceModel:
    """``ReferenceModel(model)`` or ``ReferenceModel(config, weights)``. Holds no request state; safe to share."""

    def __init__(self, model: Model | ModelConfig, weights: Weights | None = None) -> None:
        if isinstance(model, ModelConfig):
            if weights is None:
                raise InputError("ReferenceModel needs weights when it is given a ModelConfig")
            self.config, self.weights = model, weights
        else:
            self.config, self.weights = model.config, model.weights
        self._cos, self._sin = rope_tables(self.config)

    def logits(self, ids: Sequence[int]) -> F32Array:
        """The logits after every position of ``ids``: float32 [len(ids), vocab]. Raises ``InputError`` for bad ids."""
        self._check(ids, room=0)
        return self._forward(ids, self._empty_cache())

    def generate(
        self,
        prompt_ids: Sequence[int],
        max_new_tokens: int,
        params: SamplingParams,
        request: int,
        eos: bool = True,
    ) -> Generated:
        """Continue ``prompt_ids`` with a cache of its own.

        Ends after ``max_new_tokens``, after an eos token (with ``eos=True``), or when the context is full. The token at
        0-based position ``n`` of the sequence takes ``uniform(params.seed, request, n)``. Raises ``InputError``.
        """
        self._check(prompt_ids, room=1)
        cache = self._empty_cache()
        tokens: list[int] = []
        margins: list[float] = []
        feed = list(prompt_ids)
        for position in range(len(prompt_ids), min(len(prompt_ids) + max_new_tokens, self.config.context)):
            last = self._forward(feed, cache)[-1]
            token, margin = choose(last, params, uniform(params.seed, request, position))
            tokens.append(token)
            margins.append(margin)
            if eos and token in self.config.eos_ids:
                break
            feed = [token]
        return Generated(tokens, margins)

    def _check(self, ids: Sequence[int], room: int) -> None:
        if not 1 <= len(ids) <= self.config.context - room:
            raise InputError(f"{len(ids)} tokens; allowed are 1 to {self.config.context - room} (the context)")
        if min(ids) < 0 or max(ids) >= self.config.vocab:
            raise InputError(f"token ids from {min(ids)} to {max(ids)}; allowed are 0 to {self.config.vocab - 1}")

    def _empty_cache(self) -> Cache:
        empty = np.zeros((0, self.config.kv_heads, self.config.head_dim), np.float32)
        return [(empty, empty)] * self.config.layers

    def _forward(self, ids: Sequence[int], cache: Cache) -> F32Array:
        """The logits [len(ids), vocab] of tokens that follow what ``cache`` holds; the cache grows by them."""
        w = self.weights
        x: F32Array = w["embed"][np.asarray(ids, np.int64)]
        for layer in range(self.config.layers):
            x = x + self._attention(layer, self._norm(x, w[f"layer.{layer}.attn_norm"]), cache)
            y = self._norm(x, w[f"layer.{layer}.mlp_norm"])
            inner: F32Array = _silu(self._linear(layer, "w_gate", y)) * self._linear(layer, "w_up", y)
            x = x + self._linear(layer, "w_down", inner)
        return self._norm(x, w["norm"]) @ w["head"]

    def _attention(self, layer: int, x: F32Array, cache: Cache) -> F32Array:
        """Grouped-query attention of ``x`` [new, hidden] over the cached and the new positions: [new, hidden]."""
        config = self.config
        past_keys, past_values = cache[layer]
        start, new = len(past_keys), len(x)
        query, key, value = (self._linear(layer, name, x).reshape(new, -1, config.head_dim) for name in _QKV)
        if "q_norm" in config.extras:
            query = self._norm(query, self.weights[f"layer.{layer}.q_norm"])
            key = self._norm(key, self.weights[f"layer.{layer}.k_norm"])
        keys = np.concatenate([past_keys, self._rotate(key, start)])
        values = np.concatenate([past_values, value])
        cache[layer] = (keys, values)

        # Query head h uses key head h // group: split the heads axis into [kv_heads, group].
        grouped = self._rotate(query, start).reshape(new, config.kv_heads, -1, config.head_dim)
        scores: F32Array = np.einsum("qhgd,khd->hgqk", grouped, keys, optimize=True) * np.float32(config.head_dim**-0.5)
        distance = np.arange(start, start + new)[:, None] - np.arange(start + new)[None, :]
        visible = distance >= 0
        if config.sliding[layer] and config.window is not None:
            visible &= distance < config.window
        scores = np.where(visible, scores, np.float32(-np.inf))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed: F32Array = np.einsum("hgqk,khd->qhgd", scores, values, optimize=True)
        return self._linear(layer, "wo", mixed.reshape(new, -1))

    def _linear(self, layer: int, weight: str, x: F32Array) -> F32Array:
        """x @ weight of that layer, and its bias where the model has that one."""
        y: F32Array = x @ self.weights[f"layer.{layer}.{weight}"]
        bias = weight.replace("w", "b", 1)
        return y + self.weights[f"layer.{layer}.{bias}"] if bias in self.config.extras else y

    def _norm(self, x: F32Array, weight: F32Array) -> F32Array:
        mean: F32Array = np.mean(x * x, axis=-1, keepdims=True, dtype=np.float32)
        scale: F32Array = np.reciprocal(np.sqrt(mean + np.float32(self.config.norm_eps)))
        return x * scale * weight

    def _rotate(self, x: F32Array, start: int) -> F32Array:
        """Rotary embedding of ``x`` [new, heads, head_dim] at positions ``start`` and on, in the rotate-half form."""
        cos, sin = (table[start : start + len(x), None, :] for table in (self._cos, self._sin))
        first, second = np.split(x, 2, axis=-1)
        turned: F32Array = np.concatenate([-second, first], axis=-1)
        return x * cos + turned * sin


def rope_tables(config: ModelConfig) -> tuple[F32Array, F32Array]:
    """Cosine and sine by position: float32 [context, head_dim] each, the two halves of the last axis alike."""
    rope = config.rope
    frequency = np.array(rope.frequencies, np.float32)
    angle = np.arange(config.context, dtype=np.float32)[:, None] * frequency[None, :]
    angle = np.concatenate([angle, angle], axis=-1)
    scale = np.float32(rope.scale)
    return np.cos(angle) * scale, np.sin(angle) * scale


def _silu(x: F32Array) -> F32Array:
    # Clipped because exp overflows float32 near 88; the sigmoid is 0 to its last digit long before.
    sigmoid: F32Array = np.reciprocal(np.float32(1.0) + np.exp(-np.clip(x, -80.0, 80.0)))
    return x * sigmoid
