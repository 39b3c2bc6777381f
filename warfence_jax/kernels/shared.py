"""What several rooms of kernels share: what a kernel is, norm and rope, and the rule from logits to a token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float32, Int32

from warfence.host.rope import Rope

Env = Mapping[str, Array]
Attrs = Mapping[str, Any]
Kernel = Callable[[Env, Attrs], dict[str, Array]]
Draws = tuple[Array, Array, Array]  # temperature, top_p, uniform, each [*n]
IN_BOUNDS = "promise_in_bounds"


def rms_norm(x: Float32[Array, "*n d"], weight: Float32[Array, " d"], eps: float) -> Float32[Array, "*n d"]:
    """Root mean square norm over the last axis."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def linear(env: Env, x: Float32[Array, "*n d"], weight: str, bias: str) -> Float32[Array, "*n e"]:
    """x @ weight, and the bias where the layer has that one."""
    y = x @ env[weight]
    return y + env[bias] if bias in env else y


def turn(positions: Int32[Array, "b q"], rope: Rope) -> tuple[Array, Array]:
    """Cosine and sine [b, q, 1, size], the two halves alike."""
    angle = positions[:, :, None, None] * jnp.asarray(rope.frequencies, jnp.float32)
    angle = jnp.concatenate([angle, angle], axis=-1)
    return jnp.cos(angle) * rope.scale, jnp.sin(angle) * rope.scale


def rotate(x: Float32[Array, "b q heads h"], cos: Array, sin: Array) -> Float32[Array, "b q heads h"]:
    """Turn queries or keys by what `turn` gives."""
    first, second = jnp.split(x, 2, axis=-1)
    return x * cos + jnp.concatenate([-second, first], axis=-1) * sin


def choose(scores: Float32[Array, "*n v"], draws: Draws | None) -> tuple[Int32[Array, "*n"], Float32[Array, "*n"]]:
    """The rule of `warfence.serve.sampling.choose` for all rows at once: (token, margin). Rows of temperature 0, and all rows
    without draws, are greedy."""
    best = jnp.max(scores, axis=-1)
    token = jnp.argmax(scores, axis=-1).astype(jnp.int32)
    vocabulary = jnp.arange(scores.shape[-1], dtype=jnp.int32)
    second = jnp.max(jnp.where(vocabulary == token[..., None], -jnp.inf, scores), axis=-1)
    margin = best - second  # infinite for a vocabulary of one, as the rule says
    if draws is None:
        return token, margin
    temperature, top_p, uniform = draws
    hot = temperature > 0
    scaled = (scores - best[..., None]) / jnp.where(hot, temperature, 1.0)[..., None]
    picked, near = _draw(scaled, top_p[..., None], uniform[..., None])
    return jnp.where(hot, picked, token), jnp.where(hot, near, margin)


def _draw(
    scaled: Float32[Array, "*n v"], top_p: Float32[Array, "*n 1"], uniform: Float32[Array, "*n 1"]
) -> tuple[Int32[Array, "*n"], Float32[Array, "*n"]]:
    """Top-p sampling of logits that are scaled and at most 0: (token, distance to the nearest interval edge)."""
    weight = jnp.exp(scaled)
    probability = weight / jnp.sum(weight, axis=-1, keepdims=True)
    order = jnp.argsort(-probability, axis=-1, stable=True).astype(jnp.int32)
    upper = jnp.cumsum(jnp.take_along_axis(probability, order, axis=-1), axis=-1)
    lower = jnp.pad(upper[..., :-1], [(0, 0)] * (upper.ndim - 1) + [(1, 0)])
    kept = jnp.sum(lower < top_p, axis=-1, keepdims=True, dtype=jnp.int32)
    last = jnp.maximum(kept - 1, 0)
    target = uniform * jnp.take_along_axis(upper, last, axis=-1)
    pick = jnp.minimum(jnp.sum(upper <= target, axis=-1, keepdims=True, dtype=jnp.int32), last)
    below = target - jnp.take_along_axis(lower, pick, axis=-1)
    above = jnp.take_along_axis(upper, pick, axis=-1) - target
    return jnp.take_along_axis(order, pick, axis=-1)[..., 0], jnp.maximum(jnp.minimum(below, above), 0.0)[..., 0]
