"""How good a draft is: tokens of a verify step, on text of the target, without running a server.

Speculative decoding changes no text, so that the target's own continuation is the outcome. The draft guesses beside every
position of it at once; then each row is walked as a server would: a verify step at P accepts the guesses that agree up to
the first that does not, adds the target's own next token, and the next step stands there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rollouts import padded, paragraphs
from target import Target
from torch import Tensor, nn

from warfence.serve.model import ASSETS, Tokenizer

PREFIXES = (8, 16, 24, 32, 40)  # tokens of a prompt: these beginnings of every paragraph that has them
NEW_TOKENS = 48
POSITIONS = 104  # the longest prompt, its first token, the new tokens, and a block more
END = 0
BATCH = 512


@dataclass(slots=True)
class Tally:
    """The accepted guesses of every verify step."""

    accepted: list[int] = field(default_factory=list)

    def summary(self, guesses: int) -> dict[str, Any]:
        """Means by verify step, and the share of steps in which at least 1, 2, ... guesses were accepted."""
        steps = max(len(self.accepted), 1)
        mean = sum(self.accepted) / steps
        shares = [round(sum(count >= depth for count in self.accepted) / steps, 4) for depth in range(1, guesses + 1)]
        return {
            "verify_steps": steps,
            "tokens_per_step": round(mean + 1, 4),
            "accepted_per_step": round(mean, 4),
            "share_accepting_at_least": shares,
        }


def continuations(
    target: Target, data: Path, part: str, device: str, limit: int | None = None, temperature: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The target's text after the beginnings of ``part``: ids [rows, POSITIONS] on ``device``, lengths of the prompts."""
    tokenizer = Tokenizer.load(ASSETS / "tokenizer.json")
    documents = [tokenizer.encode(text) for text in paragraphs(data, part)]
    rows = [ids[:length] for ids in documents for length in PREFIXES if len(ids) > length]
    ids, lengths = (values.to(device) for values in padded(rows[:limit], POSITIONS))
    heat = torch.full((len(ids), 1), temperature, device=device)
    return target.rollout(ids, lengths, heat), lengths


def measure(draft: nn.Module, target: Target, ids: Tensor, lengths: Tensor) -> dict[str, Any]:
    """Walk every row of ``continuations`` with the guesses of ``draft``."""
    tally, guesses = Tally(), draft.block - 1
    for part, starts in zip(ids.split(BATCH), lengths.split(BATCH), strict=True):
        proposed = draft.guesses(part, target.states(part))
        following = torch.nn.functional.pad(part, (0, guesses), value=-1).unfold(1, guesses, 1)[:, 1:]
        agrees = proposed[:, : following.shape[1]] == following
        runs = agrees.int().cumprod(dim=-1).sum(dim=-1)
        for tokens, row, start in zip(part.tolist(), runs.tolist(), starts.tolist(), strict=True):
            walk(tally, tokens, row, start)
    return tally.summary(guesses)


def walk(tally: Tally, tokens: list[int], runs: list[int], start: int) -> None:
    """Step through one row from its first new token, at ``start``, to its end token or for ``NEW_TOKENS``."""
    position = start
    while position < start + NEW_TOKENS and tokens[position] != END:
        new = tokens[position + 1 : position + runs[position] + 2]
        if END in new:
            new = new[: new.index(END) + 1]
        tally.accepted.append(len(new) - 1)
        position += len(new)
