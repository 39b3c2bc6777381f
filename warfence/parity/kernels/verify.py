"""Ops of speculative verify in numpy: positions that only the device knows, acceptance, and what the next step needs."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int32

from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.parity.kernels.shared import Array, Attrs, Env, Kernel, choose_rows, rms_norm, steps


def resolve(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Tokens, positions, prefix and draws of rows whose length the host does not know yet."""
    rows, relayed = env["req_pool_indices"], env["from_relay"] > 0
    tokens: Int32[np.ndarray, "b q"] = env["input_ids"].copy()
    queries = tokens.shape[1]
    prefix = np.where(relayed, env["seq_lens"][rows], env["prefix_lens"])
    tokens[:, 0] = np.where(relayed, env["relay"][rows], tokens[:, 0])
    if attrs["proposals"]:
        tokens[:, 1:] = np.where(relayed[:, None], env["draft_tokens"][rows, : queries - 1], tokens[:, 1:])
    draws = env["uniform"]
    skip = (prefix - env["prefix_lens"]).clip(0, draws.shape[1] - queries)
    uniform = np.take_along_axis(draws, skip[:, None] + steps(0, queries), axis=1)
    positions = prefix[:, None] + steps(0, queries)
    return {"tokens": tokens, "positions": positions, "prefix_lens": prefix, "uniform": uniform}


def token_locs(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Full KV slots of the new tokens, from the snapshot of the row; slot 0 for what is padding or beyond the row."""
    return {"out_cache_loc": _locations(env["page_table"], env["positions"], env["extend_lens"])}


def swa_page_table(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Sliding slots of every position of the row: the read of both tables, whatever the length of the row."""
    return {"swa_page_table": env[FULL_TO_SWA][0][env[REQ_TO_TOKEN][env["req_pool_indices"]]]}


def swa_window(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The window out of the snapshot of the row."""
    row: Int32[np.ndarray, "b c"] = env["swa_page_table"]
    positions: Int32[np.ndarray, "b q"] = env["positions"]
    at = env["prefix_lens"][:, None] + steps(1 - attrs["window"], positions.shape[1])
    inside = (at >= 0) & (at < row.shape[1])
    table = np.where(inside, np.take_along_axis(row, at.clip(0, row.shape[1] - 1), axis=1), np.int32(0))
    return {"swa_table": table, "swa_out_cache_loc": _locations(row, positions, env["extend_lens"])}


def _locations(row: Int32[np.ndarray, "b c"], positions: Array, lens: Array) -> Int32[np.ndarray, "b q"]:
    used = (positions < row.shape[1]) & (steps(0, positions.shape[1]) < lens[:, None])
    return np.where(used, np.take_along_axis(row, positions.clip(0, row.shape[1] - 1), axis=1), np.int32(0))


def logits_all(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Logits of every new token."""
    return {"logits": rms_norm(env["hidden"], env["norm"], attrs["eps"]) @ env["head"]}


def verify(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Choose at every position as plain decoding would, and accept proposals as long as they are what was chosen."""
    b, q, v = env["logits"].shape
    temperature = env["temperature"].repeat(q) if attrs["sampled"] else None
    draws = env["uniform"].reshape(-1)
    chosen, margin = choose_rows(env["logits"].reshape(b * q, v), temperature, env["top_p"].repeat(q), draws)
    chosen, margin = chosen.reshape(b, q), margin.reshape(b, q)
    right = chosen[:, :-1] == env["tokens"][:, 1:]
    accepted = np.cumprod(right, axis=1, dtype=np.int32).sum(axis=1, dtype=np.int32)
    last = np.take_along_axis(chosen, accepted[:, None], axis=1)[:, 0]
    return {"next_tokens": chosen, "margin": margin, "accept_lens": accepted + np.int32(1), "last_token": last}


def commit(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Leave each row's token and length on the device for the next launch."""
    rows = env["req_pool_indices"]
    env["relay"][rows] = env[attrs["token"]]
    env["seq_lens"][rows] = env["prefix_lens"] + env[attrs["lens"]]
    return {}


def keep_drafts(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Leave the proposals on the device for the next verify."""
    env["draft_tokens"][env["req_pool_indices"], : env["proposals"].shape[1]] = env["proposals"]
    return {}


VERIFY: dict[str, Kernel] = {
    f.__name__: f
    for f in (resolve, token_locs, swa_page_table, swa_window, logits_all, verify, commit, keep_drafts)
}  # fmt: skip
