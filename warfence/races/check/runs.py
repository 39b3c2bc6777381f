"""The cells of one write as few intervals, as events have them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int32

MOST_RUNS = 8  # intervals of one write; what lies closest together is joined beyond that


def runs(cells: Int32[np.ndarray, " n"], most: int = MOST_RUNS) -> list[tuple[int, int]]:
    """The cells as sorted intervals [begin, end), at most `most`: the smallest gaps are closed first."""
    if not len(cells):
        return []
    ordered = np.sort(cells)
    gaps = np.diff(ordered)
    cuts = np.flatnonzero(gaps > 1)
    if len(cuts) >= most:
        cuts = np.sort(cuts[np.argsort(gaps[cuts], kind="stable")[len(cuts) - most + 1 :]])
    begins = [ordered[0], *ordered[cuts + 1]]
    ends = [*ordered[cuts], ordered[-1]]
    return [(int(begin), int(end) + 1) for begin, end in zip(begins, ends, strict=True)]
