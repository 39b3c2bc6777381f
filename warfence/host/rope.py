"""A rotary embedding as numbers, computed once on the host, so that every set of kernels turns by the same ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Rope:
    """Position ``p`` turns the pair (i, i + size/2) of a head by ``p * frequencies[i]``; cosine and sine times ``scale``.

    frequencies: float32 values, one for each pair.
    """

    frequencies: tuple[float, ...]
    scale: float = 1.0
    kind: str = "default"

    @classmethod
    def of(cls, inverse: Iterable[float], scale: float, kind: str) -> Rope:
        """Of frequencies in any precision."""
        return cls(tuple(float(np.float32(f)) for f in inverse), scale, kind)


def inverse(size: int, theta: float) -> list[float]:
    """The plain frequencies of a head of ``size``."""
    return [float(theta ** -(2 * i / size)) for i in range(size // 2)]


def plain(size: int, theta: float) -> Rope:
    """The rotary embedding of a head of ``size`` without scaling."""
    return Rope.of(inverse(size, theta), 1.0, "default")
