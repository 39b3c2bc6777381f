"""The ops of a decoder program in plain numpy: what a backend on the host needs.

Shapes: see `warfence.model.program`. A kernel sees only what its stage declares. State (KV pools, the relay) is updated
in place; values are returned as fresh arrays, never as views of a table. Independent of `warfence.model.reference`,
which has no pages: the two agree, or one of them is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float32, Int32
from numpy.typing import NDArray

from warfence.model.program import FULL_TO_SWA, REQ_TO_TOKEN

Array = NDArray[Any]
Env = Mapping[str, Array]
Attrs = Mapping[str, Any]
Kernel = Callable[[Env, Attrs], dict[str, Array]]


def stage_inputs(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Tokens, the first from the relay where the host does not know it yet, and positions."""
    tokens: Int32[np.ndarray, "b q"] = env["input_ids"].copy()
    relayed: Int32[np.ndarray, " b"] = env["relay"][env["req_pool_indices"]]
    tokens[:, 0] = np.where(env["from_relay"] > 0, relayed, tokens[:, 0])
    return {"tokens": tokens, "positions": env["prefix_lens"][:, None] + _steps(0, tokens.shape[1])}


def page_table(env: Env, attrs: Attrs) -> dict[str, Array]:
    """KV slots of each request: the read of `req_to_token`."""
    return {"page_table": env[REQ_TO_TOKEN][env["req_pool_indices"]]}


def swa_translate(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Sliding slots of the window: the read of both tables."""
    req_to_token: Int32[np.ndarray, "rows c"] = env[REQ_TO_TOKEN]
    full_to_swa: Int32[np.ndarray, " slots"] = env[FULL_TO_SWA][0]
    out: Int32[np.ndarray, "b q"] = env["out_cache_loc"]
    position = env["prefix_lens"][:, None] + _steps(1 - attrs["window"], out.shape[1])  # [b, s]
    column = position.clip(0, req_to_token.shape[1] - 1)
    slot = req_to_token[env["req_pool_indices"][:, None], column]
    table = np.where(position >= 0, full_to_swa[slot], np.int32(0))
    return {"swa_table": table, "swa_out_cache_loc": full_to_swa[out]}


def embed(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Token embeddings."""
    return {"hidden": env["embed"][env["tokens"]]}


def layer(env: Env, attrs: Attrs) -> dict[str, Array]:
    """One decoder layer: attention over the KV pool, then the MLP."""
    w = attrs["weights"]
    hidden = env["hidden"] + _attention(env, attrs, rms_norm(env["hidden"], env[f"{w}.attn_norm"], attrs["eps"]))
    x = rms_norm(hidden, env[f"{w}.mlp_norm"], attrs["eps"])
    gate = x @ env[f"{w}.w_gate"]
    gate = gate / (1 + np.exp(-gate.clip(-80, 80)))  # exp overflows float32 near 88
    return {"hidden": hidden + (gate * (x @ env[f"{w}.w_up"])) @ env[f"{w}.w_down"]}


def _attention(env: Env, attrs: Attrs, x: Array) -> Float32[np.ndarray, "b q d"]:
    """Write K and V of the new tokens into the pool, then attend over the table's slots."""
    w, window, kv_heads, size = (attrs[k] for k in ("weights", "window", "kv_heads", "head_dim"))
    b, q, _ = x.shape
    names = ("page_table", "out_cache_loc") if window is None else ("swa_table", "swa_out_cache_loc")
    table, out = (env[name] for name in names)
    positions: Int32[np.ndarray, "b q"] = env["positions"]
    turn = _rope(positions, size, attrs["theta"])
    pool: Float32[np.ndarray, "2 slots kv h"] = env[attrs["pool"]]
    pool[0][out] = _rotate((x @ env[f"{w}.wk"]).reshape(b, q, kv_heads, size), *turn)
    pool[1][out] = (x @ env[f"{w}.wv"]).reshape(b, q, kv_heads, size)

    steps = _steps(0, table.shape[1])
    at = steps if window is None else env["prefix_lens"][:, None, None] + steps - (window - 1)
    seen = (at >= 0) & (at <= positions[:, :, None])
    if window is not None:
        seen &= at > positions[:, :, None] - window
    # Query head h reads key head h // group, so the heads axis splits into [kv_heads, group].
    query = _rotate((x @ env[f"{w}.wq"]).reshape(b, q, attrs["heads"], size), *turn)
    folded = query.reshape(b, q, kv_heads, -1, size).transpose(0, 2, 3, 1, 4)  # [b, kv, group, q, h]
    keys, values = (half[table].transpose(0, 2, 1, 3)[:, :, None] for half in pool)  # [b, kv, 1, length, h]
    scores = folded @ keys.swapaxes(-1, -2) * np.float32(size**-0.5)
    scores = np.where(seen[:, None, None], scores, np.float32(-np.inf))
    weight = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (weight / weight.sum(-1, keepdims=True)) @ values
    return np.asarray(mixed.transpose(0, 3, 1, 2, 4).reshape(b, q, -1) @ env[f"{w}.wo"])


def logits(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Logits of the last new token of each row."""
    hidden: Float32[np.ndarray, "b q d"] = env["hidden"]
    last = hidden[np.arange(hidden.shape[0]), env["extend_lens"] - 1]
    return {"logits": rms_norm(last, env["norm"], attrs["eps"]) @ env["head"]}


def sample(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The rule of `warfence.sampling.choose`, for all rows at once; rows of temperature 0 are greedy."""
    scores: Float32[np.ndarray, "b v"] = env["logits"]
    token = scores.argmax(-1)
    second, best = np.partition(scores, -2, axis=-1)[:, -2:].T
    margin = best - second
    if attrs["sampled"]:
        hot = env["temperature"] > 0
        scale = np.where(hot, env["temperature"], np.float32(1))[:, None]
        weight = np.exp((scores - best[:, None]) / scale)
        probability = weight / weight.sum(-1, keepdims=True)
        order = np.argsort(-probability, axis=-1, kind="stable")
        upper = np.take_along_axis(probability, order, -1).cumsum(-1, dtype=np.float32)
        lower = np.pad(upper[:, :-1], ((0, 0), (1, 0)))
        last = np.maximum((lower < env["top_p"][:, None]).sum(-1, keepdims=True) - 1, 0)
        target = env["uniform"][:, :1] * np.take_along_axis(upper, last, -1)
        pick = np.minimum((upper <= target).sum(-1, keepdims=True), last)
        near = np.minimum(target - np.take_along_axis(lower, pick, -1), np.take_along_axis(upper, pick, -1) - target)
        token = np.where(hot, np.take_along_axis(order, pick, -1)[:, 0], token)
        margin = np.where(hot, np.maximum(near[:, 0], 0), margin)
    return {"next_tokens": token.astype(np.int32), "margin": margin}


def relay(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Leave each row's token on the device for the next launch."""
    env["relay"][env["req_pool_indices"]] = env["next_tokens"]
    return {}


def mix(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The op of random programs: see `warfence.model.program`."""
    rows: Int32[np.ndarray, " b"] = env["req_pool_indices"]
    value = 31 * env["mix"] if "mix" in env else rows.copy()
    for name in attrs["tables"]:
        value = value + env[name][rows, attrs["column"]]
    return {"mix": value}


def rms_norm(x: Array, weight: Float32[np.ndarray, " d"], eps: float) -> Array:
    """Root-mean-square norm over the last axis."""
    return np.asarray(x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(eps)) * weight)


def _steps(start: int, stop: int) -> Int32[np.ndarray, " n"]:
    return np.arange(start, stop, dtype=np.int32)


def _rope(positions: Array, size: int, theta: float) -> tuple[Array, Array]:
    """Cosine and sine [b, q, 1, size], the two halves alike."""
    frequency = np.float32(theta) ** (-np.arange(0, size, 2, dtype=np.float32) / np.float32(size))
    angle = positions[:, :, None, None].astype(np.float32) * np.concatenate([frequency, frequency])
    return np.cos(angle), np.sin(angle)


def _rotate(x: Array, cos: Array, sin: Array) -> Array:
    first, second = np.split(x, 2, axis=-1)
    return np.asarray(x * cos + np.concatenate([-second, first], axis=-1) * sin)


KERNELS: dict[str, Kernel] = {
    f.__name__: f for f in (stage_inputs, page_table, swa_translate, embed, layer, logits, sample, relay, mix)
}
