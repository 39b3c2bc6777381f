"""The ops of a decoder program as torch functions. Shapes: see `warfence.model.program`.

A kernel sees only what its stage declares. State (KV pools, relay) is updated in place; values are returned. No kernel
reads a value on the host or picks its shape from data, so each can be captured in a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float32, Int32
from torch import Tensor

from warfence.model.program import FULL_TO_SWA, REQ_TO_TOKEN

Env = Mapping[str, Tensor]
Attrs = Mapping[str, Any]
Kernel = Callable[[Env, Attrs], dict[str, Tensor]]


def stage_inputs(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Tokens, the first from the relay where the host does not know it yet, and positions."""
    ids: Int32[Tensor, "b q"] = env["input_ids"]
    relayed: Int32[Tensor, " b"] = env["relay"][env["req_pool_indices"]]
    tokens = ids.clone()
    tokens[:, 0] = torch.where(env["from_relay"] > 0, relayed, ids[:, 0])
    steps = torch.arange(ids.shape[1], dtype=torch.int32, device=ids.device)
    return {"tokens": tokens, "positions": env["prefix_lens"][:, None] + steps}


def page_table(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """KV slots of each request: the read of `req_to_token`."""
    return {"page_table": env[REQ_TO_TOKEN][env["req_pool_indices"]]}


def swa_translate(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Sliding slots of the window: the read of both tables."""
    req_to_token: Int32[Tensor, "rows c"] = env[REQ_TO_TOKEN]
    full_to_swa: Int32[Tensor, " slots"] = env[FULL_TO_SWA][0]
    out: Int32[Tensor, "b q"] = env["out_cache_loc"]
    reach = attrs["window"] - 1
    steps = torch.arange(-reach, out.shape[1], dtype=torch.int32, device=out.device)
    position: Int32[Tensor, "b s"] = env["prefix_lens"][:, None] + steps
    column = position.clamp(0, req_to_token.shape[1] - 1)
    slot = req_to_token[env["req_pool_indices"][:, None], column]
    table = torch.where(position >= 0, full_to_swa[slot], 0)
    return {"swa_table": table, "swa_out_cache_loc": full_to_swa[out]}


def embed(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Token embeddings."""
    return {"hidden": env["embed"][env["tokens"]]}


def layer(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """One decoder layer: attention over the KV pool, then the MLP."""
    w = attrs["weights"]
    hidden: Float32[Tensor, "b q d"] = env["hidden"]
    hidden = hidden + _attention(env, attrs, rms_norm(hidden, env[f"{w}.attn_norm"], attrs["eps"]))
    x = rms_norm(hidden, env[f"{w}.mlp_norm"], attrs["eps"])
    gate = torch.nn.functional.silu(x @ env[f"{w}.w_gate"])
    return {"hidden": hidden + (gate * (x @ env[f"{w}.w_up"])) @ env[f"{w}.w_down"]}


def _attention(env: Env, attrs: Attrs, x: Float32[Tensor, "b q d"]) -> Float32[Tensor, "b q d"]:
    """Write K and V of the new tokens into the pool, then attend over the table's slots."""
    w, window, heads, kv_heads, size = (attrs[k] for k in ("weights", "window", "heads", "kv_heads", "head_dim"))
    b, q, _ = x.shape
    table, out = (
        (env["page_table"], env["out_cache_loc"]) if window is None else (env["swa_table"], env["swa_out_cache_loc"])
    )
    positions: Int32[Tensor, "b q"] = env["positions"]
    cos, sin = _rope(positions, size, attrs["theta"])
    query = _rotate((x @ env[f"{w}.wq"]).view(b, q, heads, size), cos, sin)
    key = _rotate((x @ env[f"{w}.wk"]).view(b, q, kv_heads, size), cos, sin)
    value = (x @ env[f"{w}.wv"]).view(b, q, kv_heads, size)
    pool: Float32[Tensor, "2 slots kv h"] = env[attrs["pool"]]
    slots = out.reshape(-1)
    pool[0].index_copy_(0, slots.long(), key.reshape(b * q, kv_heads, size))
    pool[1].index_copy_(0, slots.long(), value.reshape(b * q, kv_heads, size))

    keys, values = pool[0][table], pool[1][table]  # [b, length, kv_heads, size]
    steps = torch.arange(table.shape[1], dtype=torch.int32, device=x.device)
    if window is None:
        seen = steps <= positions[:, :, None]
    else:
        at: Int32[Tensor, "b 1 s"] = (env["prefix_lens"][:, None] - (window - 1) + steps)[:, None, :]
        seen = (at >= 0) & (at <= positions[:, :, None]) & (at > positions[:, :, None] - window)
    group = heads // kv_heads
    # Query head h reads key head h // group, so the heads axis splits into [kv_heads, group].
    folded = query.view(b, q, kv_heads, group, size).permute(0, 2, 3, 1, 4).reshape(b, kv_heads, group * q, size)
    scores = (folded @ keys.permute(0, 2, 3, 1)).view(b, kv_heads, group, q, -1) * size**-0.5
    weight = torch.softmax(scores.masked_fill(~seen[:, None, None], -torch.inf), dim=-1)
    mixed = weight.view(b, kv_heads, group * q, -1) @ values.permute(0, 2, 1, 3)
    mixed = mixed.view(b, kv_heads, group, q, size).permute(0, 3, 1, 2, 4).reshape(b, q, heads * size)
    return mixed @ env[f"{w}.wo"]


def logits(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Logits of the last new token of each row."""
    hidden: Float32[Tensor, "b q d"] = env["hidden"]
    row = torch.arange(hidden.shape[0], device=hidden.device)
    last = hidden[row, env["extend_lens"].long() - 1]
    return {"logits": rms_norm(last, env["norm"], attrs["eps"]) @ env["head"]}


def sample(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """The rule of `warfence.sampling.choose`, for all rows at once; rows of temperature 0 are greedy."""
    scores: Float32[Tensor, "b v"] = env["logits"]
    best = scores.topk(2, dim=-1).values
    token = scores.argmax(dim=-1)
    margin = best[:, 0] - best[:, 1]
    if attrs["sampled"]:
        temperature = env["temperature"]
        hot = temperature > 0
        scale = torch.where(hot, temperature, 1.0)[:, None]
        weight = torch.exp((scores - best[:, :1]) / scale)
        probability, order = torch.sort(weight / weight.sum(-1, keepdim=True), dim=-1, descending=True, stable=True)
        upper = probability.cumsum(-1)
        lower = torch.cat([torch.zeros_like(upper[:, :1]), upper[:, :-1]], dim=-1)
        last = ((lower < env["top_p"][:, None]).sum(-1, keepdim=True) - 1).clamp(min=0)
        target = env["uniform"][:, :1] * upper.gather(-1, last)
        pick = torch.minimum((upper <= target).sum(-1, keepdim=True), last)
        near = torch.minimum(target - lower.gather(-1, pick), upper.gather(-1, pick) - target)
        token = torch.where(hot, order.gather(-1, pick)[:, 0], token)
        margin = torch.where(hot, near[:, 0].clamp(min=0), margin)
    return {"next_tokens": token.to(torch.int32), "margin": margin}


def relay(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """Leave each row's token on the device for the next launch."""
    env["relay"][env["req_pool_indices"]] = env["next_tokens"]
    return {}


def mix(env: Env, attrs: Attrs) -> dict[str, Tensor]:
    """The op of random programs: see `warfence.model.program`."""
    rows: Int32[Tensor, " b"] = env["req_pool_indices"]
    value = 31 * env["mix"] if "mix" in env else rows.clone()
    for name in attrs["tables"]:
        value = value + env[name][rows, attrs["column"]]
    return {"mix": value}


def rms_norm(x: Float32[Tensor, "*n d"], weight: Float32[Tensor, " d"], eps: float) -> Float32[Tensor, "*n d"]:
    """Root-mean-square norm over the last axis."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def _rope(positions: Int32[Tensor, "b q"], size: int, theta: float) -> tuple[Tensor, Tensor]:
    """Cosine and sine [b, q, 1, size], the two halves alike."""
    exponent = torch.arange(0, size, 2, dtype=torch.float32, device=positions.device) / size
    angle = positions[:, :, None, None] * (1.0 / theta**exponent)
    angle = torch.cat([angle, angle], dim=-1)
    return angle.cos(), angle.sin()


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


KERNELS: dict[str, Kernel] = {
    "stage_inputs": stage_inputs,
    "page_table": page_table,
    "swa_translate": swa_translate,
    "embed": embed,
    "layer": layer,
    "logits": logits,
    "sample": sample,
    "relay": relay,
    "mix": mix,
}
