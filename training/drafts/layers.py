"""What both drafts are made of: norms, rotary tables and the weights of a decoder layer, each matrix used as ``x @ W``."""

from __future__ import annotations

import torch
from network import CONTEXT, FFN, HEAD_DIM, HEADS, HIDDEN, KV_HEADS, rotate
from torch import Tensor, nn
from torch.nn import functional

EPS, THETA = 1e-5, 10000.0


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """``x`` over its root mean square, times ``weight``."""
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS) * weight


def rope_tables() -> dict[str, Tensor]:
    """Cosine and sine by position [context, head_dim], as the target has them."""
    angle = torch.outer(torch.arange(CONTEXT).float(), THETA ** -(torch.arange(0, HEAD_DIM, 2) / HEAD_DIM))
    angle = torch.cat([angle, angle], dim=-1)
    return {"cos": angle.cos(), "sin": angle.sin()}


def matrix(rows: int, columns: int, scale: float = 1.0) -> nn.Parameter:
    """A random matrix that keeps the size of what it multiplies, times ``scale``."""
    return nn.Parameter(torch.randn(rows, columns) * scale * rows**-0.5)


class DraftLayer(nn.Module):
    """The weights of one layer of the target's sizes. The drafts attend each in its own way between the two halves."""

    def __init__(self) -> None:
        super().__init__()
        self.attn_norm = nn.Parameter(torch.ones(HIDDEN))
        self.wq = matrix(HIDDEN, HEADS * HEAD_DIM)
        self.wk = matrix(HIDDEN, KV_HEADS * HEAD_DIM)
        self.wv = matrix(HIDDEN, KV_HEADS * HEAD_DIM)
        self.wo = matrix(HEADS * HEAD_DIM, HIDDEN, 0.5)
        self.mlp_norm = nn.Parameter(torch.ones(HIDDEN))
        self.w_gate = matrix(HIDDEN, FFN)
        self.w_up = matrix(HIDDEN, FFN)
        self.w_down = matrix(FFN, HIDDEN, 0.5)

    def queries(self, y: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Rotated queries [batch, heads, n, head_dim] of normed ``y`` [batch, n, hidden]; ``cos`` fits [batch, n]."""
        return rotate(heads(y @ self.wq), cos, sin)

    def keys_values(self, y: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Rotated keys, and values, [batch, heads, n, head_dim] each: a key head once for each query head it serves."""
        group = HEADS // KV_HEADS
        keys, values = rotate(heads(y @ self.wk), cos, sin), heads(y @ self.wv)
        return keys.repeat_interleave(group, dim=1), values.repeat_interleave(group, dim=1)

    def finish(self, x: Tensor, mixed: Tensor) -> Tensor:
        """Add the attention's ``mixed`` [batch, heads, n, head_dim] to ``x``, then the SwiGLU."""
        x = x + mixed.transpose(1, 2).flatten(2).to(self.wo.dtype) @ self.wo
        y = rms_norm(x, self.mlp_norm)
        return x + (functional.silu(y @ self.w_gate) * (y @ self.w_up)) @ self.w_down


def heads(x: Tensor) -> Tensor:
    """[batch, n, heads * head_dim] to [batch, heads, n, head_dim]."""
    return x.unflatten(-1, (-1, HEAD_DIM)).transpose(1, 2)
