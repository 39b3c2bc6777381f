"""The parts of a decoder layer, for layers that write their pool and for draft layers that only read it.

Keys and values travel together as one array `kv` [2, b, n, kv_heads, head_dim]. Weights are found by attrs["weights"].
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float32, Int32

from warfence_jax.kernels.shared import IN_BOUNDS, Attrs, Env, linear, rms_norm, rotate, turn


def project(
    env: Env, attrs: Attrs, hidden: Float32[Array, "b q d"], positions: Int32[Array, "b q"]
) -> tuple[Float32[Array, "b q heads h"], Float32[Array, "2 b q kv h"]]:
    """Query, and keys with values, of tokens at these positions: norm, matrices, rope."""
    w, size = attrs["weights"], attrs["head_dim"]
    x = rms_norm(hidden, env[f"{w}.attn_norm"], attrs["eps"])
    b, q, _ = x.shape
    query, key, value = (linear(env, x, f"{w}.w{n}", f"{w}.b{n}").reshape(b, q, -1, size) for n in "qkv")
    if f"{w}.q_norm" in env:
        query, key = rms_norm(query, env[f"{w}.q_norm"], attrs["eps"]), rms_norm(key, env[f"{w}.k_norm"], attrs["eps"])
    angles = turn(positions, attrs["rope"])
    return rotate(query, *angles), jnp.stack([rotate(key, *angles), value])


def finish(
    env: Env, attrs: Attrs, hidden: Float32[Array, "b q d"], query: Float32[Array, "b q heads h"],
    kv: Float32[Array, "2 b n kv h"], seen: Bool[Array, "b _q n"],
) -> Float32[Array, "b q d"]:  # fmt: skip
    """The layer once its keys are known: attention and MLP, each added to the stream. `seen`: of each query, or of all."""
    w = attrs["weights"]
    b, q, heads, size = query.shape
    # Query head h reads key head h // group, so the heads axis splits into [kv_heads, group].
    grouped = query.reshape(b, q, kv.shape[3], heads // kv.shape[3], size)
    scores = jnp.einsum("bqhgd,bkhd->bhgqk", grouped, kv[0]) * size**-0.5
    weight = jax.nn.softmax(jnp.where(seen[:, None, None], scores, -jnp.inf), axis=-1)
    mixed = jnp.einsum("bhgqk,bkhd->bqhgd", weight, kv[1]).reshape(b, q, heads * size)
    hidden = hidden + linear(env, mixed, f"{w}.wo", f"{w}.bo")
    x = rms_norm(hidden, env[f"{w}.mlp_norm"], attrs["eps"])
    gate, up = (linear(env, x, f"{w}.w_{name}", f"{w}.b_{name}") for name in ("gate", "up"))
    return hidden + linear(env, jax.nn.silu(gate) * up, f"{w}.w_down", f"{w}.b_down")


def context_of(
    env: Env, attrs: Attrs, lens: Int32[Array, " b"]
) -> tuple[Float32[Array, "2 b c kv h"], Bool[Array, "b 1 c"]]:
    """What the pool holds of each row, by `page_table`, and which of it is seen: the positions below `lens`."""
    table: Int32[Array, "b c"] = env["page_table"]
    kv = env[attrs["pool"]].at[:, table].get(mode=IN_BOUNDS)
    return kv, jnp.arange(table.shape[1], dtype=jnp.int32) < lens[:, None, None]


def beside_pool(
    env: Env, attrs: Attrs, hidden: Float32[Array, "b q d"], positions: Int32[Array, "b q"],
    kv: Float32[Array, "2 b n kv h"], seen: Bool[Array, "b 1 n"],
) -> tuple[Float32[Array, "b q d"], Float32[Array, "2 b n+q kv h"], Bool[Array, "b 1 n+q"]]:  # fmt: skip
    """A layer over keys that are there and its own, which all its tokens see; nothing is written to a pool.

    Returns the stream, and the keys and their mask with its own behind them.
    """
    query, own = project(env, attrs, hidden, positions)
    kv = jnp.concatenate([kv, own], axis=2)
    seen = jnp.pad(seen, ((0, 0), (0, 0), (0, positions.shape[1])), constant_values=True)
    return finish(env, attrs, hidden, query, kv, seen), kv, seen
