"""The ops of a launch whose rows stand where only the device knows, and the check of proposed tokens.

State that is only read is returned as it came: it was donated, and lives on in what comes back.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float32, Int32

from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence_jax.kernels.shared import IN_BOUNDS, Attrs, Env, Kernel, choose, rms_norm


def resolve(env: Env, attrs: Attrs) -> dict[str, Array]:
    """What the host could not know of relayed rows: first token, proposals, position, and which draws are theirs."""
    tokens: Int32[Array, "b q"] = env["input_ids"]
    rows: Int32[Array, " b"] = env["req_pool_indices"]
    draws: Float32[Array, "b u"] = env["uniform"]
    queries = tokens.shape[1]
    relayed = env["from_relay"] > 0
    first = jnp.where(relayed, env["relay"].at[rows].get(mode=IN_BOUNDS), tokens[:, 0])
    given = {"relay": env["relay"], "seq_lens": env["seq_lens"]}
    if attrs["proposals"]:
        given["draft_tokens"] = env["draft_tokens"]
        drafts = env["draft_tokens"].at[rows].get(mode=IN_BOUNDS)[:, : queries - 1]
        tokens = tokens.at[:, 1:].set(jnp.where(relayed[:, None], drafts, tokens[:, 1:]))
    lens = jnp.where(relayed, env["seq_lens"].at[rows].get(mode=IN_BOUNDS), env["prefix_lens"])
    steps = jnp.arange(queries, dtype=jnp.int32)
    skip = jnp.clip(lens - env["prefix_lens"], 0, draws.shape[1] - queries)
    return {
        "tokens": tokens.at[:, 0].set(first),
        "positions": lens[:, None] + steps,
        "prefix_lens": lens,
        "uniform": jnp.take_along_axis(draws, skip[:, None] + steps, axis=1, mode=IN_BOUNDS),
        **given,
    }


def token_locs(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The slots to write, from the row's snapshot."""
    return {"out_cache_loc": _locations(env["page_table"], env["positions"], env["extend_lens"])}


def swa_page_table(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The sliding slots of each request row."""
    slots: Int32[Array, "b c"] = env[REQ_TO_TOKEN].at[env["req_pool_indices"]].get(mode=IN_BOUNDS)
    return {"swa_page_table": env[FULL_TO_SWA].at[0, slots].get(mode=IN_BOUNDS)}


def swa_window(env: Env, attrs: Attrs) -> dict[str, Array]:
    """From the row's sliding slots: those of the positions that a query can see, and those to write."""
    table: Int32[Array, "b c"] = env["swa_page_table"]
    positions: Int32[Array, "b q"] = env["positions"]
    steps = jnp.arange(1 - attrs["window"], positions.shape[1], dtype=jnp.int32)
    return {
        "swa_table": _at(table, env["prefix_lens"][:, None] + steps),
        "swa_out_cache_loc": _locations(table, positions, env["extend_lens"]),
    }


def _locations(
    table: Int32[Array, "b c"], positions: Int32[Array, "b q"], extend_lens: Int32[Array, " b"]
) -> Int32[Array, "b q"]:
    """The slots of the new tokens; 0, which nobody reads, where there is no new token or no column."""
    new = jnp.arange(positions.shape[1], dtype=jnp.int32) < extend_lens[:, None]
    return jnp.where(new, _at(table, positions), 0)


def _at(table: Int32[Array, "b c"], positions: Int32[Array, "b n"]) -> Int32[Array, "b n"]:
    """The slots at these positions of each row; 0 outside of the table."""
    inside = (positions >= 0) & (positions < table.shape[1])
    column = jnp.clip(positions, 0, table.shape[1] - 1)
    return jnp.where(inside, jnp.take_along_axis(table, column, axis=1, mode=IN_BOUNDS), 0)


def logits_all(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The logits of every position."""
    return {"logits": rms_norm(env["hidden"], env["norm"], attrs["eps"]) @ env["head"]}


def verify(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Choose at every position; the tokens proposed are right as long as each is what was chosen before it."""
    scores: Float32[Array, "b q v"] = env["logits"]
    by_query = scores.shape[:2]
    draws = None
    if attrs["sampled"]:
        temperature, top_p = (jnp.broadcast_to(env[n][:, None], by_query) for n in ("temperature", "top_p"))
        draws = (temperature, top_p, env["uniform"])
    chosen, margin = choose(scores, draws)
    wrong = jnp.pad(chosen[:, :-1] != env["tokens"][:, 1:], ((0, 0), (0, 1)), constant_values=True)
    accepted = jnp.argmax(wrong, axis=1).astype(jnp.int32)  # where the first wrong one would stand
    last = jnp.take_along_axis(chosen, accepted[:, None], axis=1, mode=IN_BOUNDS)[:, 0]
    return {"next_tokens": chosen, "margin": margin, "accept_lens": accepted + 1, "last_token": last}


def commit(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Leave the newest token of each row, and how much of the row is in the cache, for its next launch."""
    rows: Int32[Array, " b"] = env["req_pool_indices"]
    lens = env["prefix_lens"] + env[attrs["lens"]]
    return {
        "relay": env["relay"].at[rows].set(env[attrs["token"]], mode=IN_BOUNDS),
        "seq_lens": env["seq_lens"].at[rows].set(lens, mode=IN_BOUNDS),
    }


KERNELS: dict[str, Kernel] = {
    "resolve": resolve,
    "token_locs": token_locs,
    "swa_page_table": swa_page_table,
    "swa_window": swa_window,
    "logits_all": logits_all,
    "verify": verify,
    "commit": commit,
}
