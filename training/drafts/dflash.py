"""DFLASH: one parallel guess at the next tokens of a row.

A block stands at position P: the token there, then mask vectors. Its rows see each other and, as keys and values, the
target's hidden states of the positions before P (three layers of them, summed through a matrix each). Row q guesses
the token at P + q. Here many blocks of one sequence run side by side, none of which sees another.
"""

from __future__ import annotations

import torch
from layers import DraftLayer, matrix, rms_norm, rope_tables
from network import HIDDEN
from target import Target
from torch import Tensor, nn
from torch.nn import functional

BLOCK, LAYERS, TAPS = 8, 2, (1, 3, 5)
DECAY = 4.0  # a guess counts only when all before it were right: its weight is exp(-(q - 1) / DECAY)
MAX_ANCHORS = 32  # at once, which bounds the memory of `guesses`


class DFlash(nn.Module):
    """The draft; the names of its state are those of the contract without their first word."""

    name, block, layers, taps = "dflash", BLOCK, LAYERS, TAPS

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.mask = nn.Parameter(torch.randn(HIDDEN) * 0.1)
        # The hidden states grow with depth; the first scales make their parts alike.
        self.tap = nn.ParameterDict({str(index): matrix(HIDDEN, HIDDEN, 1 / (1 + index)) for index in TAPS})
        self.context_norm = nn.Parameter(torch.ones(HIDDEN))
        self.layer = nn.ModuleList(DraftLayer() for _ in range(LAYERS))
        self.norm = nn.Parameter(target.norm.clone())
        fixed = {"embed": target.embed, **rope_tables()}
        for name, table in fixed.items():
            self.register_buffer(name, table, persistent=False)

    def forward(self, ids: Tensor, states: list[Tensor], anchors: Tensor) -> Tensor:
        """The hidden of every block after the last layer: [batch, anchors, block, hidden].

        ``ids`` [batch, n], the target's ``states`` of them, and ``anchors`` [batch, anchors], each in 1..n-1.
        """
        batch, count = anchors.shape
        features = sum(states[int(index)] @ weight for index, weight in self.tap.items())
        context = rms_norm(features, self.context_norm)
        x = self.mask.expand(batch, count, BLOCK, HIDDEN).clone()
        x[:, :, 0] = self.embed[ids.gather(1, anchors)]
        x = x.flatten(1, 2)
        positions = (anchors[:, :, None] + torch.arange(BLOCK, device=ids.device)).flatten(1)
        before = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        at = self.cos[positions].unsqueeze(1), self.sin[positions].unsqueeze(1)
        visible = self._visible(anchors, ids.shape[1])
        for layer in self.layer:
            y = rms_norm(x, layer.attn_norm)
            query = layer.queries(y, *at)
            parts = zip(layer.keys_values(context, *before), layer.keys_values(y, *at), strict=True)
            keys, values = (torch.cat([past.to(query), own.to(query)], dim=2) for past, own in parts)
            x = layer.finish(x, functional.scaled_dot_product_attention(query, keys, values, attn_mask=visible))
        return x.unflatten(1, (count, BLOCK))

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits of the guesses, rows 1 and on of each block: [batch, anchors, block - 1, vocab]."""
        return rms_norm(hidden[:, :, 1:], self.norm) @ self.embed.T

    def loss(self, ids: Tensor, lengths: Tensor, states: list[Tensor], anchors: int) -> Tensor:
        """Weighted cross entropy of blocks at ``anchors`` random places of each row's continuation."""
        batch, positions = ids.shape
        room = (positions - 1 - lengths)[:, None]
        at = lengths[:, None] + (torch.rand(batch, anchors, device=ids.device) * room).long()
        logits = self.logits(self(ids, states, at))
        place = at[:, :, None] + torch.arange(1, BLOCK, device=ids.device)
        tokens = ids.gather(1, place.clamp(max=positions - 1).flatten(1)).view_as(place)
        weight = torch.exp(-torch.arange(BLOCK - 1, device=ids.device) / DECAY) * (place < positions)
        each = functional.cross_entropy(logits.float().flatten(0, 2), tokens.flatten(), reduction="none")
        return (each * weight.flatten()).sum() / weight.sum()

    @torch.no_grad()
    def guesses(self, ids: Tensor, states: list[Tensor]) -> Tensor:
        """The proposals of a block at every position: [batch, n, block - 1]; those at position 0 mean nothing."""
        everywhere = torch.arange(ids.shape[1], device=ids.device).clamp(min=1).expand_as(ids)
        parts = everywhere.split(MAX_ANCHORS, dim=1)
        return torch.cat([self.logits(self(ids, states, part)).argmax(dim=-1) for part in parts], dim=1)

    @staticmethod
    def _visible(anchors: Tensor, positions: int) -> Tensor:
        """[batch, 1, rows, positions + rows], rows = anchors * block: the context before P, and the row's own block."""
        batch, count = anchors.shape
        rows = anchors.repeat_interleave(BLOCK, dim=1)
        context = torch.arange(positions, device=anchors.device) < rows[:, :, None]
        number = torch.arange(count, device=anchors.device).repeat_interleave(BLOCK)
        own = (number[:, None] == number[None, :]).expand(batch, -1, -1)
        return torch.cat([context, own], dim=2).unsqueeze(1)
