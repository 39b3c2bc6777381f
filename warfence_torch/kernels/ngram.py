"""The ops of a draft without a model: look up where the last tokens stood before, and propose what followed.

B rows, Q queries, C context, N gram, K proposals. The history of a row is read through its page table: each full slot
remembers the token whose KV it holds.
"""

from __future__ import annotations

import torch
from jaxtyping import Int32
from torch import Tensor

from warfence_torch.kernels.shared import Attrs, Env, Kernel, steps


def ngram_store(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Remember the token of each slot that is written."""
    env["slot_tokens"][env["out_cache_loc"]] = env["tokens"]
    return {}


def ngram_lookup(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """What followed the longest match (up to N) of the row's last tokens; of equal ones, the latest."""
    table: Int32[Tensor, "b c"] = env["page_table"]
    rows: Int32[Tensor, " b"] = env["req_pool_indices"]
    c = table.shape[1]
    end: Int32[Tensor, "b 1"] = env["seq_lens"][rows][:, None].clamp(max=c - 1)
    history = env["slot_tokens"][table].scatter(1, end.long(), env["relay"][rows][:, None])  # [b, c]

    at = steps(0, c, table)
    matching = at < end
    length: Int32[Tensor, "b c"] = torch.zeros_like(history)  # of the match that ends at each position
    for i in range(attrs["gram"]):
        wanted = history.gather(1, (end - i).clamp(min=0).long())
        matching = matching & (at >= i) & (history[:, (at - i).clamp(min=0)] == wanted)
        length = length + matching
    # No position is the best of its row twice, so the greatest is the longest match and of those the latest.
    best = (length * c + at).where(at < end, -1).argmax(-1, keepdim=True)
    found = length.gather(1, best) > 0
    follow = best + 1 + steps(0, attrs["count"], table)  # [b, k]
    proposals = history.gather(1, follow.clamp(max=c - 1))
    return {"proposals": torch.where(found & (follow <= end), proposals, 0)}


KERNELS: dict[str, Kernel] = {f.__name__: f for f in (ngram_store, ngram_lookup)}
