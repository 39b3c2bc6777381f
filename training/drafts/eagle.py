"""EAGLE: one layer that continues the target's last hidden state by itself, one token after another.

At position p it reads the token at p + 1 and the target's hidden state of p, and guesses the token at p + 2. For a
further guess its own output stands in for the hidden state that the target has not computed yet. Training unrolls this
for every position at once: in step s, row p starts from the target's states up to p - s and from its own after that.
"""

from __future__ import annotations

import torch
from layers import DraftLayer, rms_norm, rope_tables
from network import HEAD_DIM, HIDDEN
from target import Target
from torch import Tensor, nn
from torch.nn import functional

BLOCK, LAYERS, TAPS = 5, 1, ()
STEPS = 5  # guesses that training unrolls: one more than a block of five asks for
DECAY = 4.0  # the weight of step s is exp(-s / DECAY)


class Eagle(nn.Module):
    """The draft; the names of its state are those of the contract without their first word."""

    name, block, layers, taps = "eagle", BLOCK, LAYERS, TAPS

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.fc = nn.Parameter(torch.cat([torch.randn(HIDDEN, HIDDEN) * 0.3, torch.eye(HIDDEN)]))
        self.layer = nn.ModuleList([DraftLayer()])
        self.norm = nn.Parameter(target.norm.clone())
        fixed = {"embed": target.embed, **rope_tables()}
        for name, table in fixed.items():
            self.register_buffer(name, table, persistent=False)

    def forward(self, ids: Tensor, hidden: Tensor, steps: int) -> list[Tensor]:
        """The outputs of ``steps`` unrolled steps, each [batch, n - 1, hidden], from the target's last ``hidden``.

        Row p of step s guesses the token at p + 2 and means nothing for p < s.
        """
        n = ids.shape[1] - 1
        tables, layer = (self.cos[:n], self.sin[:n]), self.layer[0]
        embedded, given = self.embed[ids[:, 1:]], hidden[:, :-1]
        distance = torch.arange(n, device=ids.device)[:, None] - torch.arange(n, device=ids.device)[None, :]
        outputs: list[Tensor] = []
        past: list[tuple[Tensor, Tensor]] = []  # keys and values of each step
        for step in range(steps):
            x = torch.cat([embedded, given], dim=-1) @ self.fc
            y = rms_norm(x, layer.attn_norm)
            query = layer.queries(y, *tables) * HEAD_DIM**-0.5
            past.append(layer.keys_values(y, *tables))
            # The target's states up to p - step; then, one position each, the keys of the steps 1 to this one.
            scores = (query @ past[0][0].transpose(-1, -2)).masked_fill(distance < step, -torch.inf)
            later = [(shift(keys, step - k), shift(values, step - k)) for k, (keys, values) in enumerate(past) if k]
            own = [(query * keys).sum(dim=-1, keepdim=True) for keys, _ in later]
            weights = torch.cat([scores, *own], dim=-1).float().softmax(dim=-1)
            mixed = weights[..., :n].to(query.dtype) @ past[0][1]
            for index, (_, values) in enumerate(later):
                mixed = mixed + weights[..., n + index, None].to(query.dtype) * values
            x = layer.finish(x, mixed)
            outputs.append(x)
            given = functional.pad(x, (0, 0, 1, 0))[:, :-1]
        return outputs

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits of the guesses."""
        return rms_norm(hidden, self.norm) @ self.embed.T

    def loss(self, ids: Tensor, lengths: Tensor, states: list[Tensor], anchors: int) -> Tensor:
        """Weighted cross entropy of every step at every place of the continuation; ``anchors`` has no meaning here."""
        place = torch.arange(ids.shape[1] - 2, device=ids.device)
        total, weights = torch.zeros((), device=ids.device), 0.0
        for step, output in enumerate(self(ids, states[-1], STEPS)):
            each = functional.cross_entropy(
                self.logits(output[:, :-1]).float().flatten(0, 1), ids[:, 2:].flatten(), reduction="none"
            )
            # The chain of row p starts at p - step, at the earliest from the last token of the prompt.
            counts = (place - step >= lengths[:, None] - 1).flatten()
            weight = torch.tensor(-step / DECAY).exp().item()
            total = total + weight * (each * counts).sum() / counts.sum()
            weights += weight
        return total / weights

    @torch.no_grad()
    def guesses(self, ids: Tensor, states: list[Tensor]) -> Tensor:
        """The proposals of a chain that starts beside every position: [batch, n, block - 1].

        Entry k at position P guesses the token at P + k + 1: row P - 1 + k of step k. The embeddings are those of the
        true tokens, which a chain has as long as its guesses were right, and what follows a wrong one does not count.
        """
        steps = [self.logits(output).argmax(dim=-1) for output in self(ids, states[-1], BLOCK - 1)]
        columns = [functional.pad(guess, (1, k))[:, k : k + ids.shape[1]] for k, guess in enumerate(steps)]
        return torch.stack(columns, dim=-1)


def shift(x: Tensor, count: int) -> Tensor:
    """Move [batch, heads, n, head_dim] ``count`` positions later: row p holds what was at p - count."""
    return functional.pad(x, (0, 0, count, 0))[:, :, : x.shape[2]]
