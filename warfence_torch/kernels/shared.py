"""What several rooms of ops share: the parts of a decoder layer, and the rule that chooses a token.

Shapes: B rows, Q queries, L keys, H heads, D hidden, V vocabulary; "*n" is any leading axes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float32, Int32
from torch import Tensor

from warfence.host.rope import Rope

Env = Mapping[str, Tensor]
Attrs = Mapping[str, Any]
Kernel = Callable[[Env, Attrs], dict[str, Tensor]]


def steps(start: int, stop: int, like: Tensor) -> Int32[Tensor, " n"]:
    """start..stop-1 on the device of `like`."""
    return torch.arange(start, stop, dtype=torch.int32, device=like.device)


def rms_norm(x: Float32[Tensor, "*n d"], weight: Float32[Tensor, " d"], eps: float) -> Float32[Tensor, "*n d"]:
    """Root-mean-square norm over the last axis."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight


@functools.cache
def _frequencies(rope: Rope, device: torch.device) -> Float32[Tensor, " pairs"]:
    """Moved once, in the warm-up: a capture cannot wait for the host."""
    return torch.tensor(rope.frequencies, dtype=torch.float32, device=device)


def turn(positions: Int32[Tensor, "b q"], rope: Rope) -> tuple[Tensor, Tensor]:
    """Cosine and sine [b, q, 1, size], the two halves alike."""
    angle = positions[:, :, None, None] * _frequencies(rope, positions.device)
    angle = torch.cat([angle, angle], dim=-1)
    return (angle.cos(), angle.sin()) if rope.scale == 1.0 else (angle.cos() * rope.scale, angle.sin() * rope.scale)


def rotate(x: Float32[Tensor, "b q h s"], cos: Tensor, sin: Tensor) -> Float32[Tensor, "b q h s"]:
    """Turn each pair (i, i + s/2) of a head by its angle."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def linear(env: Env, x: Float32[Tensor, "*n d"], weight: str, bias: str) -> Float32[Tensor, "*n e"]:
    """x @ weight, and the bias where the layer has that one."""
    y = x @ env[weight]
    return y + env[bias] if bias in env else y


def split(x: Float32[Tensor, "b q hs"], size: int) -> Float32[Tensor, "b q h s"]:
    """Heads of `size`."""
    return x.view(*x.shape[:2], -1, size)


def query_key_value(
    env: Env, attrs: Attrs, hidden: Float32[Tensor, "b q d"], positions: Int32[Tensor, "b q"]
) -> tuple[Float32[Tensor, "b q heads s"], Float32[Tensor, "b q kv s"], Float32[Tensor, "b q kv s"]]:
    """What a pre-norm layer attends with; query and key are rotated to their positions."""
    w, size = attrs["weights"], attrs["head_dim"]
    x = rms_norm(hidden, env[f"{w}.attn_norm"], attrs["eps"])
    angles = turn(positions, attrs["rope"])
    query, key, value = (split(linear(env, x, f"{w}.w{name}", f"{w}.b{name}"), size) for name in "qkv")
    if f"{w}.q_norm" in env:
        query = rms_norm(query, env[f"{w}.q_norm"], attrs["eps"])
        key = rms_norm(key, env[f"{w}.k_norm"], attrs["eps"])
    return rotate(query, *angles), rotate(key, *angles), value


def attend(
    query: Float32[Tensor, "b q heads s"],
    keys: Float32[Tensor, "b l kv s"],
    values: Float32[Tensor, "b l kv s"],
    seen: Bool[Tensor, "b _q l"],
) -> Float32[Tensor, "b q hs"]:
    """Softmax attention over the keys that each query sees (`seen` may have one query for all)."""
    b, q, heads, size = query.shape
    kv_heads = keys.shape[2]
    group = heads // kv_heads
    # Query head h reads key head h // group, so the heads axis splits into [kv_heads, group].
    folded = query.view(b, q, kv_heads, group, size).permute(0, 2, 3, 1, 4).reshape(b, kv_heads, group * q, size)
    scores = (folded @ keys.permute(0, 2, 3, 1)).view(b, kv_heads, group, q, -1) * size**-0.5
    weight = torch.softmax(scores.masked_fill(~seen[:, None, None], -torch.inf), dim=-1)
    mixed = weight.view(b, kv_heads, group * q, -1) @ values.permute(0, 2, 1, 3)
    return mixed.view(b, kv_heads, group, q, size).permute(0, 3, 1, 2, 4).reshape(b, q, heads * size)


def add_mlp(env: Env, attrs: Attrs, hidden: Float32[Tensor, "b q d"]) -> Float32[Tensor, "b q d"]:
    """The second half of a layer: hidden plus its SwiGLU."""
    w = attrs["weights"]
    x = rms_norm(hidden, env[f"{w}.mlp_norm"], attrs["eps"])
    gate = torch.nn.functional.silu(linear(env, x, f"{w}.w_gate", f"{w}.b_gate"))
    return hidden + linear(env, gate * linear(env, x, f"{w}.w_up", f"{w}.b_up"), f"{w}.w_down", f"{w}.b_down")


def choose(
    scores: Float32[Tensor, "*n v"],
    temperature: Float32[Tensor, "*#n"],
    top_p: Float32[Tensor, "*#n"],
    uniform: Float32[Tensor, "*n"],
    sampled: bool,
) -> tuple[Int32[Tensor, "*n"], Float32[Tensor, "*n"]]:
    """Tokens and margins by the rule of `warfence.serve.sampling.choose`; where the temperature is 0, greedy.

    `temperature` and `top_p` need only broadcast to the leading axes. Without `sampled` all is greedy.
    """
    best = scores.topk(2, dim=-1).values
    token = scores.argmax(dim=-1)
    margin = best[..., 0] - best[..., 1]
    if sampled:
        hot = temperature > 0
        scale = torch.where(hot, temperature, 1.0)[..., None]
        weight = torch.exp((scores - best[..., :1]) / scale)
        probability, order = torch.sort(weight / weight.sum(-1, keepdim=True), dim=-1, descending=True, stable=True)
        upper = probability.cumsum(-1)
        lower = torch.cat([torch.zeros_like(upper[..., :1]), upper[..., :-1]], dim=-1)
        last = ((lower < top_p[..., None]).sum(-1, keepdim=True) - 1).clamp(min=0)
        target = uniform[..., None] * upper.gather(-1, last)
        pick = torch.minimum((upper <= target).sum(-1, keepdim=True), last)
        near = torch.minimum(target - lower.gather(-1, pick), upper.gather(-1, pick) - target)
        token = torch.where(hot, order.gather(-1, pick)[..., 0], token)
        margin = torch.where(hot, near[..., 0].clamp(min=0), margin)
    return token.to(torch.int32), margin
