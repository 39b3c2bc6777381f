"""Whether memory stays as it is, however many steps are taken."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATM = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """Memory of this process; None where the system does not tell in this way."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes after a third of the steps, and at the end: of the process, and what the backend says of itself."""

    steps: tuple[int, int]
    resident: tuple[int | None, int | None]
    reported: tuple[Mapping[str, int], Mapping[str, int]]

    @property
    def growth_per_step(self) -> float | None:
        """Bytes of the process a step, over the last two thirds."""
        early, late = self.resident
        return None if early is None or late is None else (late - early) / (self.steps[1] - self.steps[0])

    def to_json(self) -> dict[str, Any]:
        return {
            "steps": list(self.steps),
            "resident_bytes": list(self.resident),
            "reported_bytes": [dict(r) for r in self.reported],
            "growth_bytes_per_step": self.growth_per_step,
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Memory:
        return cls(tuple(found["steps"]), tuple(found["resident_bytes"]), tuple(found["reported_bytes"]))


def over_steps(run: Callable[[], int], report: Callable[[], Mapping[str, object]]) -> Memory:
    """`run` takes some steps and says how many; it is called three times."""

    def look() -> tuple[int | None, dict[str, int]]:
        return resident_bytes(), {n: v for n, v in report().items() if n.endswith("_bytes") and isinstance(v, int)}

    first = run()
    early = look()
    total = first + run() + run()
    late = look()
    return Memory((first, total), (early[0], late[0]), (early[1], late[1]))
