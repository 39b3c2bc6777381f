"""The ops around a target forward that verifies proposals: where the row stands, where it writes, what it accepts.

B rows, Q queries, C context, W window, S = W-1+Q, D hidden, V vocabulary, U draws. The row's place is resolved on the
device: how many tokens the launch before accepted, the host does not know yet.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float32, Int32
from torch import Tensor

from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence_torch.kernels.shared import Attrs, Env, Kernel, choose, rms_norm, steps


def resolve(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Tokens, positions, prefix and draws of each row: the device's where the row is relayed, else the host's."""
    ids: Int32[Tensor, "b q"] = env["input_ids"]
    rows: Int32[Tensor, " b"] = env["req_pool_indices"]
    host: Int32[Tensor, " b"] = env["prefix_lens"]
    draws: Float32[Tensor, "b u"] = env["uniform"]
    relayed = env["from_relay"] > 0
    q = ids.shape[1]
    prefix = torch.where(relayed, env["seq_lens"][rows], host)
    known = env["draft_tokens"][rows, : q - 1] if attrs["proposals"] else ids[:, 1:]
    device = torch.cat([env["relay"][rows][:, None], known], dim=1)
    queries = steps(0, q, ids)
    # The host brought draws from its own guess of the prefix on; the device knows how far beyond that the row is.
    skip = (prefix - host).clamp(0, draws.shape[1] - q)
    return {
        "tokens": torch.where(relayed[:, None], device, ids),
        "positions": prefix[:, None] + queries,
        "prefix_lens": prefix,
        "uniform": draws.gather(1, (skip[:, None] + queries).long()),
    }


def token_locs(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Full KV slot of each new token."""
    positions: Int32[Tensor, "b q"] = env["positions"]
    return {"out_cache_loc": _at(env["page_table"], positions, _new(positions, env["extend_lens"]))}


def swa_page_table(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Sliding slots of all positions of each request: the read of both tables."""
    slots: Int32[Tensor, "b c"] = env[REQ_TO_TOKEN][env["req_pool_indices"]]
    return {"swa_page_table": env[FULL_TO_SWA][0][slots]}


def swa_window(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """The window out of the snapshot of all positions: sliding slots to read [B,S] and to write [B,Q]."""
    table: Int32[Tensor, "b c"] = env["swa_page_table"]
    positions: Int32[Tensor, "b q"] = env["positions"]
    window: Int32[Tensor, "b s"] = env["prefix_lens"][:, None] + steps(1 - attrs["window"], positions.shape[1], table)
    return {
        "swa_table": _at(table, window, torch.ones_like(window, dtype=torch.bool)),
        "swa_out_cache_loc": _at(table, positions, _new(positions, env["extend_lens"])),
    }


def logits_all(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Logits of every position [B,Q,V]."""
    return {"logits": rms_norm(env["hidden"], env["norm"], attrs["eps"]) @ env["head"]}


def verify(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """The target's own token at each position, and how many of the proposals before it those confirm."""
    tokens: Int32[Tensor, "b q"] = env["tokens"]
    chosen, margin = choose(
        env["logits"], env["temperature"][:, None], env["top_p"][:, None], env["uniform"], sampled=attrs["sampled"]
    )
    right = (chosen[:, :-1] == tokens[:, 1:]).to(torch.int32)
    accepted = right.cumprod(-1).sum(-1, dtype=torch.int32)  # the run of right ones from the first on
    last = chosen.gather(1, accepted[:, None].long())[:, 0]
    return {"next_tokens": chosen, "margin": margin, "accept_lens": accepted + 1, "last_token": last}


def commit(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Leave each row's last token and length on the device for the next launch."""
    rows: Int32[Tensor, " b"] = env["req_pool_indices"]
    env["relay"][rows] = env[attrs["token"]]
    env["seq_lens"][rows] = env["prefix_lens"] + env[attrs["lens"]]
    return {}


def _new(positions: Int32[Tensor, "b q"], extend_lens: Int32[Tensor, " b"]) -> Bool[Tensor, "b q"]:
    """Which queries are new tokens of the row, not padding."""
    return steps(0, positions.shape[1], positions) < extend_lens[:, None]


def _at(table: Int32[Tensor, "b c"], column: Int32[Tensor, "b n"], wanted: Bool[Tensor, "b n"]) -> Int32[Tensor, "b n"]:
    """table[b, column]; 0, the reserved slot, where not wanted or outside of the table."""
    last = table.shape[1] - 1
    inside = wanted & (column >= 0) & (column <= last)
    return torch.where(inside, table.gather(1, column.clamp(0, last).long()), 0)


KERNELS: dict[str, Kernel] = {
    f.__name__: f for f in (resolve, token_locs, swa_page_table, swa_window, logits_all, verify, commit)
}
