"""The ops of a decoder program as torch functions. Shapes: see `warfence.serve.model.program`.

A kernel sees only what its stage declares. State (KV pools, relay) is updated in place; values are returned. No kernel
reads a value on the host or picks its shape from data, so each can be captured in a graph.
"""

from __future__ import annotations

import torch
from jaxtyping import Float32, Int32
from torch import Tensor

from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.host.stage_calls import for_call
from warfence_torch.kernels.shared import (
    Attrs,
    Env,
    Kernel,
    add_mlp,
    attend,
    choose,
    linear,
    query_key_value,
    rms_norm,
    steps,
)


def stage_inputs(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Tokens, the first from the relay where the host does not know it yet, and positions."""
    ids: Int32[Tensor, "b q"] = env["input_ids"]
    relayed: Int32[Tensor, " b"] = env["relay"][env["req_pool_indices"]]
    tokens = ids.clone()
    tokens[:, 0] = torch.where(env["from_relay"] > 0, relayed, ids[:, 0])
    return {"tokens": tokens, "positions": env["prefix_lens"][:, None] + steps(0, ids.shape[1], ids)}


def page_table(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """KV slots of each request: the read of `req_to_token`."""
    return {"page_table": env[REQ_TO_TOKEN][env["req_pool_indices"]]}


def swa_translate(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Sliding slots of the window: the read of both tables."""
    req_to_token: Int32[Tensor, "rows c"] = env[REQ_TO_TOKEN]
    full_to_swa: Int32[Tensor, " slots"] = env[FULL_TO_SWA][0]
    out: Int32[Tensor, "b q"] = env["out_cache_loc"]
    position: Int32[Tensor, "b s"] = env["prefix_lens"][:, None] + steps(1 - attrs["window"], out.shape[1], out)
    column = position.clamp(0, req_to_token.shape[1] - 1)
    slot = req_to_token[env["req_pool_indices"][:, None], column]
    table = torch.where(position >= 0, full_to_swa[slot], 0)
    return {"swa_table": table, "swa_out_cache_loc": full_to_swa[out]}


def copy_tables(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Private copies of whole tables, under their names: what later stages take instead of reading (for measuring)."""
    return {name: env[name].clone() for name in attrs["tables"]}


def embed(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Token embeddings."""
    return {"hidden": env["embed"][env["tokens"]]}


def layer(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """One decoder layer: attention over the KV pool, then the MLP."""
    hidden: Float32[Tensor, "b q d"] = env["hidden"]
    return {"hidden": add_mlp(env, attrs, hidden + _attention(env, attrs, hidden))}


def _attention(env: Env, attrs: Attrs, hidden: Float32[Tensor, "b q d"]) -> Float32[Tensor, "b q d"]:
    """Write K and V of the new tokens into the pool, then attend over the table's slots."""
    window = attrs["window"]
    b, q, _ = hidden.shape
    names = ("page_table", "out_cache_loc") if window is None else ("swa_table", "swa_out_cache_loc")
    table, out = (env[name] for name in names)
    # The snapshot may be of a longer call; one of a shorter call is refused before the pool is touched (law 10).
    slots = out[:, : for_call(names[1], out.shape[1], q)].reshape(-1).long()
    positions: Int32[Tensor, "b q"] = env["positions"]
    query, key, value = query_key_value(env, attrs, hidden, positions)
    pool: Float32[Tensor, "2 slots kv h"] = env[attrs["pool"]]
    pool[0].index_copy_(0, slots, key.reshape(b * q, *pool.shape[2:]))
    pool[1].index_copy_(0, slots, value.reshape(b * q, *pool.shape[2:]))

    column = steps(0, table.shape[1], table)
    if window is None:
        seen = column <= positions[:, :, None]
    else:
        at: Int32[Tensor, "b 1 s"] = (env["prefix_lens"][:, None] - (window - 1) + column)[:, None, :]
        seen = (at >= 0) & (at <= positions[:, :, None]) & (at > positions[:, :, None] - window)
    mixed, w = attend(query, pool[0][table], pool[1][table], seen), attrs["weights"]
    return linear(env, mixed, f"{w}.wo", f"{w}.bo")


def logits(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Logits of the last new token of each row."""
    hidden: Float32[Tensor, "b q d"] = env["hidden"]
    row = torch.arange(hidden.shape[0], device=hidden.device)
    last = hidden[row, env["extend_lens"].long() - 1]
    return {"logits": rms_norm(last, env["norm"], attrs["eps"]) @ env["head"]}


def sample(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """The next token of each row, and how near it was to another; the row's first draw counts."""
    token, margin = choose(
        env["logits"], env["temperature"], env["top_p"], env["uniform"][:, 0], sampled=attrs["sampled"]
    )
    return {"next_tokens": token, "margin": margin}


def relay(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Leave each row's token on the device for the next launch."""
    env["relay"][env["req_pool_indices"]] = env["next_tokens"]
    return {}


def mix(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """The op of random programs: see `warfence.serve.model.program`."""
    rows: Int32[Tensor, " b"] = env["req_pool_indices"]
    value = 31 * env["mix"] if "mix" in env else rows.clone()
    for name in attrs["tables"]:
        value = value + env[name][rows, attrs["column"]]
    return {"mix": value}


KERNELS: dict[str, Kernel] = {
    f.__name__: f
    for f in (stage_inputs, page_table, swa_translate, copy_tables, embed, layer, logits, sample, relay, mix)
}
