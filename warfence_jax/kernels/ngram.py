"""NGRAM: a drafter without a model, which proposes what followed the last tokens of a row when they stood there before."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Int32

from warfence_jax.kernels.shared import IN_BOUNDS, Attrs, Env, Kernel


def ngram_store(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Note which token each slot holds."""
    return {"slot_tokens": env["slot_tokens"].at[env["out_cache_loc"]].set(env["tokens"], mode=IN_BOUNDS)}


def ngram_lookup(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Propose what followed the longest earlier match of the row's end, the latest of equally long ones."""
    table: Int32[Array, "b c"] = env["page_table"]
    rows: Int32[Array, " b"] = env["req_pool_indices"]
    context = table.shape[1]
    end = jnp.minimum(env["seq_lens"].at[rows].get(mode=IN_BOUNDS), context - 1)[:, None]  # of the newest token
    column = jnp.arange(context, dtype=jnp.int32)
    stored = env["slot_tokens"].at[table].get(mode=IN_BOUNDS)
    history = jnp.where(column < end, stored, env["relay"].at[rows].get(mode=IN_BOUNDS)[:, None])

    back = jnp.arange(attrs["gram"], dtype=jnp.int32)
    earlier: Int32[Array, "c n"] = column[:, None] - back
    before = history.at[:, jnp.maximum(earlier, 0)].get(mode=IN_BOUNDS)
    alike: Bool[Array, "b c n"] = (earlier >= 0) & (before == _take(history, jnp.maximum(end - back, 0))[:, None])
    differs = jnp.pad(~alike, ((0, 0), (0, 0), (0, 1)), constant_values=True)
    match = jnp.argmax(differs, axis=2).astype(jnp.int32)  # where the first token differs, going back
    rank = jnp.where(column < end, match * context + column, -1)  # the longest match first, then the latest
    found = jnp.max(rank, axis=1, keepdims=True) >= context
    following = jnp.argmax(rank, axis=1).astype(jnp.int32)[:, None] + 1 + jnp.arange(attrs["count"], dtype=jnp.int32)
    proposals = jnp.where(found & (following <= end), _take(history, jnp.minimum(following, context - 1)), 0)
    return {"proposals": proposals, **{n: env[n] for n in ("relay", "seq_lens", "slot_tokens")}}


def _take(history: Int32[Array, "b c"], column: Int32[Array, "b n"]) -> Int32[Array, "b n"]:
    return jnp.take_along_axis(history, column, axis=1, mode=IN_BOUNDS)


KERNELS: dict[str, Kernel] = {"ngram_store": ngram_store, "ngram_lookup": ngram_lookup}
