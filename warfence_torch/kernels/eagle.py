"""The ops of a recurrent draft (EAGLE): one layer that continues the target's hidden state token by token.

B rows, Q queries, C context, D hidden, K proposals. What the target left of a launch is kept per row, so that the draft's
own launch, which comes later, needs nothing from the host.
"""

from __future__ import annotations

import torch
from jaxtyping import Float32, Int32
from torch import Tensor

from warfence_torch.kernels.shared import Attrs, Env, Kernel, add_mlp, attend, query_key_value, rms_norm, steps


def eagle_keep(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Keep the launch's hidden states, the token that follows each, and how many of them count."""
    tokens: Int32[Tensor, "b q"] = env["tokens"]
    rows: Int32[Tensor, " b"] = env["req_pool_indices"]
    lens: Int32[Tensor, " b"] = env[attrs["lens"]]
    q = tokens.shape[1]
    if attrs["verified"]:
        following = env["next_tokens"]
    else:
        given = torch.cat([tokens[:, 1:], torch.zeros_like(tokens[:, :1])], dim=1)
        last = (lens[:, None] - 1).clamp(0, q - 1)  # a warm-up brings lengths of 0
        following = given.scatter(1, last.long(), env["next_tokens"][:, None])
    env["eagle_hidden"][rows, :q] = env["hidden"]
    env["eagle_tokens"][rows, :q] = following
    env["eagle_lens"][rows] = torch.stack([env["prefix_lens"], lens], dim=1)
    return {}


def eagle_inputs(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """What was kept, as the input of the draft layer [B,Q,D] at the positions of the target's launch."""
    rows: Int32[Tensor, " b"] = env["req_pool_indices"]
    q = attrs["queries"]
    lens: Int32[Tensor, "b 2"] = env["eagle_lens"][rows]
    prefix = lens[:, 0]
    return {
        "hidden": _join(env, env["eagle_tokens"][rows, :q], env["eagle_hidden"][rows, :q]),
        "positions": prefix[:, None] + steps(0, q, lens),
        "prefix_lens": prefix,
        "extend_lens": lens[:, 1].clamp(1, q),
    }


def eagle_propose(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """K proposals, each from the state of the one before; their keys and values are not kept."""
    table: Int32[Tensor, "b c"] = env["page_table"]
    pool: Float32[Tensor, "2 slots kv h"] = env[attrs["pool"]]
    hidden: Float32[Tensor, "b q d"] = env["hidden"]
    row = torch.arange(hidden.shape[0], device=hidden.device)
    lens: Int32[Tensor, " b"] = env["extend_lens"]
    state = hidden[row, (lens.long() - 1).clamp(0, hidden.shape[1] - 1)][:, None]  # [b, 1, d]
    start = (env["prefix_lens"] + lens)[:, None]  # the first position that is not in the pool
    keys, values = pool[0][table], pool[1][table]
    seen = steps(0, table.shape[1], table) < start
    proposals: list[Int32[Tensor, "b 1"]] = []
    for k in range(attrs["count"]):
        if k:
            state = _join(env, proposals[-1], state)
            query, key, value = query_key_value(env, attrs, state, start + (k - 1))
            keys, values = torch.cat([keys, key], dim=1), torch.cat([values, value], dim=1)
            seen = torch.cat([seen, torch.ones_like(seen[:, :1])], dim=1)
            state = state + attend(query, keys, values, seen[:, None]) @ env[f"{attrs['weights']}.wo"]
            state = add_mlp(env, attrs, state)
        scores = rms_norm(state, env["eagle.norm"], attrs["eps"]) @ env["head"]
        proposals.append(scores.argmax(-1).to(torch.int32))
    return {"proposals": torch.cat(proposals, dim=1)}


def keep_drafts(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Leave the proposals on the device for the next verify."""
    proposals: Int32[Tensor, "b k"] = env["proposals"]
    env["draft_tokens"][env["req_pool_indices"], : proposals.shape[1]] = proposals
    return {}


def _join(env: Env, tokens: Int32[Tensor, "b q"], hidden: Float32[Tensor, "b q d"]) -> Float32[Tensor, "b q d"]:
    """The draft layer's input: a token's embedding and the state before it, made one."""
    return torch.cat([env["embed"][tokens], hidden], dim=-1) @ env["eagle.fc"]


KERNELS: dict[str, Kernel] = {f.__name__: f for f in (eagle_keep, eagle_inputs, eagle_propose, keep_drafts)}
