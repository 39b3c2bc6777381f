"""The ops of a decoder program as pure JAX functions. Shapes: see `warfence.model.program`.

A kernel sees only what its stage declares and returns what the stage gives plus its updated state. Indices come from
tables that the planner keeps in range, so gathers and scatters promise to be in bounds and pay for no masks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float32, Int32

from warfence.kernels import StageEnv, check_given, kernel_of
from warfence.model.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.program import Stage

Env = Mapping[str, Array]
Attrs = Mapping[str, Any]
Kernel = Callable[[Env, Attrs], dict[str, Array]]
IN_BOUNDS = "promise_in_bounds"


def run_stage(stage: Stage, known: Mapping[str, Array]) -> dict[str, Array]:
    """Trace one stage over the arrays that are known; returns its gives and its updated state."""
    names = (*stage.reads, *stage.takes, *stage.state, *stage.params)
    given = kernel_of(stage, KERNELS)(StageEnv(stage.name, {n: known[n] for n in names}), stage.attrs)
    check_given(stage, given, (*stage.gives, *stage.state))
    return given


def stage_inputs(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The tokens, the first of each row from the relay where the host does not know it, and their positions."""
    ids: Int32[Array, "b q"] = env["input_ids"]
    relayed: Int32[Array, " b"] = env["relay"].at[env["req_pool_indices"]].get(mode=IN_BOUNDS)
    first = jnp.where(env["from_relay"] > 0, relayed, ids[:, 0])
    steps = jnp.arange(ids.shape[1], dtype=jnp.int32)
    positions = env["prefix_lens"][:, None] + steps
    return {"tokens": ids.at[:, 0].set(first), "positions": positions, "relay": env["relay"]}


def page_table(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The KV slots of each request row: the snapshot that the full layers use."""
    return {"page_table": env[REQ_TO_TOKEN].at[env["req_pool_indices"]].get(mode=IN_BOUNDS)}


def swa_translate(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The sliding slots of the positions that a query can see, and of the new tokens."""
    req_to_token: Int32[Array, "rows c"] = env[REQ_TO_TOKEN]
    full_to_swa: Int32[Array, "1 slots"] = env[FULL_TO_SWA]
    out: Int32[Array, "b q"] = env["out_cache_loc"]
    steps = jnp.arange(1 - attrs["window"], out.shape[1], dtype=jnp.int32)
    position: Int32[Array, "b s"] = env["prefix_lens"][:, None] + steps
    column = jnp.clip(position, 0, req_to_token.shape[1] - 1)
    slot = req_to_token.at[env["req_pool_indices"][:, None], column].get(mode=IN_BOUNDS)
    table = jnp.where(position >= 0, full_to_swa.at[0, slot].get(mode=IN_BOUNDS), 0)
    return {"swa_table": table, "swa_out_cache_loc": full_to_swa.at[0, out].get(mode=IN_BOUNDS)}


def embed(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Token embeddings."""
    return {"hidden": env["embed"].at[env["tokens"]].get(mode=IN_BOUNDS)}


def layer(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Attention and MLP, each behind a norm and added to the stream."""
    w = attrs["weights"]
    hidden: Float32[Array, "b q d"] = env["hidden"]
    mixed, pool = _attention(env, attrs, rms_norm(hidden, env[f"{w}.attn_norm"], attrs["eps"]))
    hidden = hidden + mixed
    x = rms_norm(hidden, env[f"{w}.mlp_norm"], attrs["eps"])
    inner = jax.nn.silu(x @ env[f"{w}.w_gate"]) * (x @ env[f"{w}.w_up"])
    return {"hidden": hidden + inner @ env[f"{w}.w_down"], attrs["pool"]: pool}


def _attention(
    env: Env, attrs: Attrs, x: Float32[Array, "b q d"]
) -> tuple[Float32[Array, "b q d"], Float32[Array, "2 slots kv h"]]:
    """Write K and V of the new tokens into the pool, then attend over the table's slots. Returns (mixed, pool)."""
    w, window, heads, kv_heads, size = (attrs[k] for k in ("weights", "window", "heads", "kv_heads", "head_dim"))
    b, q, _ = x.shape
    names = ("page_table", "out_cache_loc") if window is None else ("swa_table", "swa_out_cache_loc")
    table, out = env[names[0]], env[names[1]]
    positions: Int32[Array, "b q"] = env["positions"]
    cos, sin = _rope(positions, size, attrs["theta"])
    query = _rotate((x @ env[f"{w}.wq"]).reshape(b, q, heads, size), cos, sin)
    key = _rotate((x @ env[f"{w}.wk"]).reshape(b, q, kv_heads, size), cos, sin)
    value = (x @ env[f"{w}.wv"]).reshape(b, q, kv_heads, size)
    fresh = jnp.stack([key, value]).reshape(2, b * q, kv_heads, size)
    pool = env[attrs["pool"]].at[:, out.reshape(-1)].set(fresh, mode=IN_BOUNDS)

    keys, values = pool.at[:, table].get(mode=IN_BOUNDS)  # [b, length, kv_heads, size] each
    seen = _visible(positions, env["prefix_lens"], table.shape[1], window)
    # Query head h reads key head h // group, so the heads axis splits into [kv_heads, group].
    grouped = query.reshape(b, q, kv_heads, heads // kv_heads, size)
    scores = jnp.einsum("bqhgd,bkhd->bhgqk", grouped, keys) * size**-0.5
    weight = jax.nn.softmax(jnp.where(seen[:, None, None], scores, -jnp.inf), axis=-1)
    mixed = jnp.einsum("bhgqk,bkhd->bqhgd", weight, values).reshape(b, q, heads * size)
    return mixed @ env[f"{w}.wo"], pool


def _visible(
    positions: Int32[Array, "b q"], prefix_lens: Int32[Array, " b"], columns: int, window: int | None
) -> Bool[Array, "b q k"]:
    """Which table column each query sees. Column j is position j, or prefix - (window - 1) + j in a sliding layer."""
    at = positions[:, :, None]
    steps = jnp.arange(columns, dtype=jnp.int32)
    if window is None:
        return steps <= at
    key_at = (prefix_lens[:, None] - (window - 1) + steps)[:, None, :]
    return (key_at >= 0) & (key_at <= at) & (key_at > at - window)


def logits(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The logits of the last new token of each row."""
    hidden: Float32[Array, "b q d"] = env["hidden"]
    last = hidden.at[jnp.arange(hidden.shape[0]), env["extend_lens"] - 1].get(mode=IN_BOUNDS)
    return {"logits": rms_norm(last, env["norm"], attrs["eps"]) @ env["head"]}


def sample(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The rule of `warfence.sampling.choose`, for all rows at once; rows of temperature 0 are greedy."""
    scores: Float32[Array, "b v"] = env["logits"]
    best = jnp.max(scores, axis=-1)
    token = jnp.argmax(scores, axis=-1).astype(jnp.int32)
    vocabulary = jnp.arange(scores.shape[1], dtype=jnp.int32)
    second = jnp.max(jnp.where(vocabulary == token[:, None], -jnp.inf, scores), axis=-1)
    margin = best - second  # infinite for a vocabulary of one, as the rule says
    if attrs["sampled"]:
        hot = env["temperature"] > 0
        picked, near = _draw(env, (scores - best[:, None]) / jnp.where(hot, env["temperature"], 1.0)[:, None])
        token, margin = jnp.where(hot, picked, token), jnp.where(hot, near, margin)
    return {"next_tokens": token, "margin": margin}


def _draw(env: Env, scaled: Float32[Array, "b v"]) -> tuple[Int32[Array, " b"], Float32[Array, " b"]]:
    """Top-p sampling of logits that are scaled and at most 0: (token, distance to the nearest interval edge)."""
    weight = jnp.exp(scaled)
    probability = weight / jnp.sum(weight, axis=-1, keepdims=True)
    order = jnp.argsort(-probability, axis=-1, stable=True).astype(jnp.int32)
    upper = jnp.cumsum(jnp.take_along_axis(probability, order, axis=-1), axis=-1)
    lower = jnp.pad(upper[:, :-1], ((0, 0), (1, 0)))
    kept = jnp.sum(lower < env["top_p"][:, None], axis=-1, keepdims=True, dtype=jnp.int32)
    last = jnp.maximum(kept - 1, 0)
    target = env["uniform"][:, :1] * jnp.take_along_axis(upper, last, axis=-1)
    pick = jnp.minimum(jnp.sum(upper <= target, axis=-1, keepdims=True, dtype=jnp.int32), last)
    below = target - jnp.take_along_axis(lower, pick, axis=-1)
    above = jnp.take_along_axis(upper, pick, axis=-1) - target
    return jnp.take_along_axis(order, pick, axis=-1)[:, 0], jnp.maximum(jnp.minimum(below, above), 0.0)[:, 0]


def relay(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Leave the sampled token of each row for its next launch."""
    return {"relay": env["relay"].at[env["req_pool_indices"]].set(env["next_tokens"], mode=IN_BOUNDS)}


def mix(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The op of random programs: see `warfence.model.program`."""
    rows: Int32[Array, " b"] = env["req_pool_indices"]
    value = 31 * env["mix"] if "mix" in env else rows
    for name in attrs["tables"]:
        value = value + env[name].at[rows, attrs["column"]].get(mode=IN_BOUNDS)
    return {"mix": value}


def rms_norm(x: Float32[Array, "*n d"], weight: Float32[Array, " d"], eps: float) -> Float32[Array, "*n d"]:
    """Root mean square norm over the last axis."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def _rope(positions: Int32[Array, "b q"], size: int, theta: float) -> tuple[Array, Array]:
    """Cosine and sine [b, q, 1, size], the two halves alike."""
    exponent = jnp.arange(0, size, 2, dtype=jnp.float32) / size
    angle = positions[:, :, None, None] * (1.0 / jnp.float32(theta) ** exponent)
    angle = jnp.concatenate([angle, angle], axis=-1)
    return jnp.cos(angle), jnp.sin(angle)


def _rotate(x: Array, cos: Array, sin: Array) -> Array:
    first, second = jnp.split(x, 2, axis=-1)
    return x * cos + jnp.concatenate([-second, first], axis=-1) * sin


KERNELS: dict[str, Kernel] = {
    "stage_inputs": stage_inputs,
    "page_table": page_table,
    "swa_translate": swa_translate,
    "embed": embed,
    "layer": layer,
    "logits": logits,
    "sample": sample,
    "relay": relay,
    "mix": mix,
}
