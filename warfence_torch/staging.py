"""Pinned staging memory. A shared table too (law 12): the host may refill a slot only after the copy that reads it."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Int32
from torch import Tensor

DEPTH = 3  # launches that the host can be ahead before it has to wait for a copy


class PinnedRing:
    """A ring of pinned vectors of int32 words, each with the event of the copy that last read it."""

    def __init__(self, words: int, depth: int = DEPTH) -> None:
        self._slots = [torch.zeros(words, dtype=torch.int32).pin_memory() for _ in range(depth)]
        self._views = [s.numpy() for s in self._slots]
        self._events = [torch.cuda.Event() for _ in range(depth)]
        self._next = 0

    def upload(self, words: Int32[np.ndarray, " n"], target: Tensor, stream: torch.cuda.Stream) -> None:
        """Copy n words into the target, which is of n words, on the (current) stream. Blocks only when the whole ring is in
        flight."""
        i, n = self._next, len(words)
        self._next = (i + 1) % len(self._slots)
        self._events[i].synchronize()  # never recorded counts as complete: right for a slot that was never used
        self._views[i][:n] = words
        slot = self._slots[i]
        target.copy_(slot if slot.numel() == n else slot[:n], non_blocking=True)
        self._events[i].record(stream)
