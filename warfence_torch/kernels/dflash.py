"""The ops of a block draft (DFLASH): features tapped from target layers, and one bidirectional pass over a block.

B rows, Q queries of the block, C context, D hidden. The block's first token is known; the others are masks, proposed all
at once. The features of cached positions lie in draft pools at the target's full slots.
"""

from __future__ import annotations

import torch
from jaxtyping import Float32, Int32
from torch import Tensor

from warfence_torch.kernels.shared import (
    Attrs,
    Env,
    Kernel,
    add_mlp,
    attend,
    query_key_value,
    rms_norm,
    rotate,
    split,
    steps,
    turn,
)


def draft_tap(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Add what this target layer says to the features [B,Q,D]."""
    tapped: Float32[Tensor, "b q d"] = env["hidden"] @ env[attrs["weight"]]
    return {"features": tapped if attrs["first"] else env["features"] + tapped}


def draft_context(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Keys and values of the features, for each draft layer, into its pool."""
    size = attrs["head_dim"]
    c = rms_norm(env["features"], env["dflash.context_norm"], attrs["eps"])
    angles = turn(env["positions"], attrs["rope"])
    slots = env["out_cache_loc"].reshape(-1).long()
    for j, name in enumerate(attrs["pools"]):
        pool: Float32[Tensor, "2 slots kv h"] = env[name]
        key = rotate(split(c @ env[f"dflash.layer.{j}.wk"], size), *angles)
        value = split(c @ env[f"dflash.layer.{j}.wv"], size)
        pool[0].index_copy_(0, slots, key.reshape(-1, *pool.shape[2:]))
        pool[1].index_copy_(0, slots, value.reshape(-1, *pool.shape[2:]))
    return {}


def draft_block(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """The block before its first layer: the known token, then masks."""
    b, q = env["tokens"].shape
    first: Float32[Tensor, "b 1 d"] = env["embed"][env["tokens"][:, :1]]
    return {"draft_hidden": torch.cat([first, env["dflash.mask"].expand(b, q - 1, -1)], dim=1)}


def draft_layer(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """One draft layer. Each query sees the context before the block and the whole block, which is not kept."""
    hidden: Float32[Tensor, "b q d"] = env["draft_hidden"]
    table: Int32[Tensor, "b c"] = env["page_table"]
    pool: Float32[Tensor, "2 slots kv h"] = env[attrs["pool"]]
    query, key, value = query_key_value(env, attrs, hidden, env["positions"])
    context = steps(0, table.shape[1], table) < env["prefix_lens"][:, None]
    block = torch.ones(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
    keys = torch.cat([pool[0][table], key], dim=1)
    values = torch.cat([pool[1][table], value], dim=1)
    seen = torch.cat([context, block], dim=1)[:, None]
    hidden = hidden + attend(query, keys, values, seen) @ env[f"{attrs['weights']}.wo"]
    return {"draft_hidden": add_mlp(env, attrs, hidden)}


def draft_propose(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """The block's tokens [B,Q]: the known one, and the best at each mask."""
    scores = rms_norm(env["draft_hidden"][:, 1:], env["dflash.norm"], attrs["eps"]) @ env["head"]
    return {"tokens": torch.cat([env["tokens"][:, :1], scores.argmax(-1).to(torch.int32)], dim=1)}


KERNELS: dict[str, Kernel] = {
    f.__name__: f for f in (draft_tap, draft_context, draft_block, draft_layer, draft_propose)
}
