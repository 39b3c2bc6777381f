"""The ops of a decoder program as pure JAX functions. Shapes: see `warfence.serve.model.program`.

A kernel sees only what its stage declares and returns what the stage gives plus its updated state. Indices come from
tables that the planner keeps in range, so gathers and scatters promise to be in bounds and pay for no masks.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float32, Int32

from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.host.stage_calls import for_call
from warfence_jax.kernels.layers import finish, project
from warfence_jax.kernels.shared import IN_BOUNDS, Attrs, Env, Kernel, choose, rms_norm


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


def copy_tables(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Private copies of whole tables, under their names: what later stages take instead of reading (for measuring)."""
    return {name: jnp.copy(env[name]) for name in attrs["tables"]}


def embed(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Token embeddings."""
    return {"hidden": env["embed"].at[env["tokens"]].get(mode=IN_BOUNDS)}


def layer(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Write K and V of the new tokens into the pool, attend over the table's slots, then the MLP.

    The table and the places to write are a snapshot, which may be longer than this call.
    """
    hidden: Float32[Array, "b q d"] = env["hidden"]
    positions: Int32[Array, "b q"] = env["positions"]
    b, q, _ = hidden.shape
    window = attrs["window"]
    table, place = ("page_table", "out_cache_loc") if window is None else ("swa_table", "swa_out_cache_loc")
    out = env[place][:, : for_call(place, env[place].shape[1], q)]
    query, fresh = project(env, attrs, hidden, positions)
    pool = env[attrs["pool"]].at[:, out.reshape(-1)].set(fresh.reshape(2, b * q, *fresh.shape[3:]), mode=IN_BOUNDS)
    kv = pool.at[:, env[table]].get(mode=IN_BOUNDS)
    seen = _visible(positions, env["prefix_lens"], env[table].shape[1], window)
    return {"hidden": finish(env, attrs, hidden, query, kv, seen), attrs["pool"]: pool}


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
    """One token a row, by the row's first draw."""
    draws = (env["temperature"], env["top_p"], env["uniform"][:, 0]) if attrs["sampled"] else None
    token, margin = choose(env["logits"], draws)
    return {"next_tokens": token, "margin": margin}


def relay(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Leave the sampled token of each row for its next launch."""
    return {"relay": env["relay"].at[env["req_pool_indices"]].set(env["next_tokens"], mode=IN_BOUNDS)}


def mix(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The op of random programs: see `warfence.serve.model.program`."""
    rows: Int32[Array, " b"] = env["req_pool_indices"]
    value = 31 * env["mix"] if "mix" in env else rows
    for name in attrs["tables"]:
        value = value + env[name].at[rows, attrs["column"]].get(mode=IN_BOUNDS)
    return {"mix": value}


KERNELS: dict[str, Kernel] = {
    "stage_inputs": stage_inputs,
    "page_table": page_table,
    "swa_translate": swa_translate,
    "copy_tables": copy_tables,
    "embed": embed,
    "layer": layer,
    "logits": logits,
    "sample": sample,
    "relay": relay,
    "mix": mix,
}
