"""Staging without a ring: new pinned memory for every upload. For measuring what the ring saves (`TorchBackend(staging=)`)."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Int32
from torch import Tensor


class FreshStaging:
    """Takes the place of `warfence_torch.staging.PinnedRing`. torch's host allocator keeps the memory until its copy is done."""

    def __init__(self, words: int, depth: int = 0) -> None:
        """Nothing is made before it is needed."""

    def upload(self, words: Int32[np.ndarray, " n"], target: Tensor, stream: torch.cuda.Stream) -> None:
        """Copy n words into the target, which is of n words, on the (current) stream."""
        pinned = torch.empty(len(words), dtype=torch.int32, pin_memory=True)
        pinned.numpy()[:] = words
        target.copy_(pinned, non_blocking=True)
