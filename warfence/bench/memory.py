"""Whether memory stays as it is, however many steps are taken."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

STATM = Path("/proc/self/statm")
Pair = tuple[int | None, int | None]


def resident_bytes() -> int | None:
    """Memory of this process; None where the system does not tell in this way."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes after a third of the steps, and at the end: of the process, and what the backend says of itself.

    growth_bytes_per_step: of the process, over the last two thirds; None where its memory is not told.
    """

    steps: tuple[int, int]
    resident_bytes: tuple[int | None, int | None]
    reported_bytes: tuple[Mapping[str, int], Mapping[str, int]]
    growth_bytes_per_step: float | None

    @classmethod
    def of(
        cls, steps: tuple[int, int], resident: Pair, reported: tuple[Mapping[str, int], Mapping[str, int]]
    ) -> Memory:
        early, late = resident
        growth = None if early is None or late is None else (late - early) / (steps[1] - steps[0])
        return cls(steps, resident, reported, growth)


def over_steps(run: Callable[[], int], report: Callable[[], Mapping[str, object]]) -> Memory:
    """`run` takes some steps and says how many; it is called three times."""

    def look() -> tuple[int | None, dict[str, int]]:
        return resident_bytes(), {n: v for n, v in report().items() if n.endswith("_bytes") and isinstance(v, int)}

    first = run()
    early = look()
    total = first + run() + run()
    late = look()
    return Memory.of((first, total), (early[0], late[0]), (early[1], late[1]))
