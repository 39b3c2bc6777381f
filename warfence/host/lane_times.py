"""The timer of a backend whose lanes are worker threads: it looks at the host's clock on the lane's own thread."""

from __future__ import annotations

import time
from collections.abc import Mapping

from warfence.core.abilities import StageTime, Stamp
from warfence.host.clock import HostClock
from warfence.host.lanes import WorkerLane


class WorkerTimer(HostClock):
    """Implements `warfence.core.abilities.Timer`."""

    about: Mapping[str, str] = {
        "clock": "the host's monotonic clock, read on each lane's own thread",
        "slice": "a stage from its call to its return; a table write likewise; a wait from its begin to its end",
    }

    def __init__(self) -> None:
        self._noted: list[tuple[int, str, float, float]] = []

    def start(self) -> None:
        self._noted.clear()
        super().start()

    def note(self, launch: int, stage: str, begin: float, end: float) -> None:
        """A stage ran between two readings of `time.perf_counter`. Called on the lane's thread."""
        self._noted.append((launch, stage, begin, end))

    def before(self, lane: WorkerLane) -> Stamp:
        seen: list[float] = []
        lane.submit(lambda: seen.append(time.perf_counter()))
        return lambda: self.since(seen[0]) if seen else None

    def after(self, lane: WorkerLane) -> Stamp:
        return self.before(lane)

    def stages(self) -> list[StageTime]:
        return [StageTime(n, (stage,), self.since(a), self.since(b)) for n, stage, a, b in self._noted]
