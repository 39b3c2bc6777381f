"""Where a captured region is broken into segments. Each is issued by itself; together they are the region."""

from __future__ import annotations

from warfence.core.program import Step


def segments(steps: tuple[Step, ...], breaks: tuple[str, ...]) -> list[tuple[Step, ...]]:
    """The steps of one region, cut after each stage named in `breaks` and the marker and gate that belong to it.

    A region without a break, and one without any step, is a single segment.
    """
    cuts = [
        i
        for i in range(1, len(steps))
        if steps[i - 1].name in breaks and steps[i].name != steps[i - 1].name  # marker and gate have the stage's name
    ]
    return [steps[a:b] for a, b in zip([0, *cuts], [*cuts, len(steps)], strict=True)]
