"""What the numpy kernels share: norms, rotary embedding, attention over keys, and the rule that chooses a token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Int32
from numpy.typing import NDArray

from warfence.host.rope import Rope

Array = NDArray[Any]
Env = Mapping[str, Array]
Attrs = Mapping[str, Any]
Kernel = Callable[[Env, Attrs], dict[str, Array]]


def rms_norm(x: Array, weight: Float32[np.ndarray, " d"], eps: float) -> Array:
    """Root-mean-square norm over the last axis."""
    return np.asarray(x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(eps)) * weight)


def steps(start: int, stop: int) -> Int32[np.ndarray, " n"]:
    """start .. stop-1 as int32."""
    return np.arange(start, stop, dtype=np.int32)


def turn(positions: Array, rope: Rope) -> tuple[Array, Array]:
    """Cosine and sine [b, q, 1, size], the two halves alike."""
    frequency = np.tile(np.array(rope.frequencies, np.float32), 2)
    angle, scale = positions[:, :, None, None].astype(np.float32) * frequency, np.float32(rope.scale)
    return np.cos(angle) * scale, np.sin(angle) * scale


def rotate(x: Array, cos: Array, sin: Array) -> Array:
    """Rotary embedding in the rotate-half form."""
    first, second = np.split(x, 2, axis=-1)
    return np.asarray(x * cos + np.concatenate([-second, first], axis=-1) * sin)


def linear(env: Env, x: Array, weight: str, bias: str) -> Array:
    """x @ weight, and the bias where the layer has that one."""
    return np.asarray(x @ env[weight] + env[bias] if bias in env else x @ env[weight])


def heads(x: Array, size: int) -> Array:
    """x [b, q, heads * size] as heads: [b, q, heads, size]."""
    return np.asarray(x.reshape(*x.shape[:2], -1, size))


def query_key_value(env: Env, attrs: Attrs, x: Array, positions: Array) -> tuple[Array, Array, Array]:
    """Heads of normed x [b, q, d]; where the layer norms query and key it does, and both are turned to their positions."""
    w, eps = attrs["weights"], attrs["eps"]
    query, key, value = (heads(linear(env, x, f"{w}.w{n}", f"{w}.b{n}"), attrs["head_dim"]) for n in "qkv")
    if f"{w}.q_norm" in env:
        query, key = rms_norm(query, env[f"{w}.q_norm"], eps), rms_norm(key, env[f"{w}.k_norm"], eps)
    angles = turn(positions, attrs["rope"])
    return rotate(query, *angles), rotate(key, *angles), value


def attend(
    query: Float32[np.ndarray, "b q h size"], keys: Float32[np.ndarray, "b k kv size"],
    values: Float32[np.ndarray, "b k kv size"], seen: Bool[np.ndarray, "b q k"],
) -> Float32[np.ndarray, "b q n"]:  # fmt: skip
    """Grouped-query attention; query head h reads key head h // group, so the heads axis splits into [kv, group]."""
    b, q, _, size = query.shape
    folded = query.reshape(b, q, keys.shape[2], -1, size).transpose(0, 2, 3, 1, 4)  # [b, kv, group, q, size]
    keys, values = (half.transpose(0, 2, 1, 3)[:, :, None] for half in (keys, values))  # [b, kv, 1, k, size]
    scores = folded @ keys.swapaxes(-1, -2) * np.float32(size**-0.5)
    scores = np.where(seen[:, None, None], scores, np.float32(-np.inf))
    weight = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (weight / weight.sum(-1, keepdims=True)) @ values
    return np.asarray(mixed.transpose(0, 3, 1, 2, 4).reshape(b, q, -1))


def mlp(env: Env, weights: str, x: Array) -> Array:
    """SwiGLU with the weights of that name."""
    gate = linear(env, x, f"{weights}.w_gate", f"{weights}.b_gate")
    gate = gate / (1 + np.exp(-gate.clip(-80, 80)))  # exp overflows float32 near 88
    inner = gate * linear(env, x, f"{weights}.w_up", f"{weights}.b_up")
    return linear(env, inner, f"{weights}.w_down", f"{weights}.b_down")


def choose_rows(
    scores: Float32[np.ndarray, "n v"], temperature: Array | None, top_p: Array, uniform: Array
) -> tuple[Int32[np.ndarray, " n"], Float32[np.ndarray, " n"]]:
    """The rule of `warfence.serve.sampling.choose` for n rows of logits: (token, margin). temperature None: all are greedy."""
    token = scores.argmax(-1)
    second, best = np.partition(scores, -2, axis=-1)[:, -2:].T
    margin = best - second
    if temperature is not None:
        hot = temperature > 0
        scale = np.where(hot, temperature, np.float32(1))[:, None]
        weight = np.exp((scores - best[:, None]) / scale)
        probability = weight / weight.sum(-1, keepdims=True)
        order = np.argsort(-probability, axis=-1, kind="stable")
        upper = np.take_along_axis(probability, order, -1).cumsum(-1, dtype=np.float32)
        lower = np.pad(upper[:, :-1], ((0, 0), (1, 0)))
        last = np.maximum((lower < top_p[:, None]).sum(-1, keepdims=True) - 1, 0)
        target = uniform[:, None] * np.take_along_axis(upper, last, -1)
        pick = np.minimum((upper <= target).sum(-1, keepdims=True), last)
        near = np.minimum(target - np.take_along_axis(lower, pick, -1), np.take_along_axis(upper, pick, -1) - target)
        token = np.where(hot, np.take_along_axis(order, pick, -1)[:, 0], token)
        margin = np.where(hot, np.maximum(near[:, 0], 0), margin)
    return token.astype(np.int32), margin
