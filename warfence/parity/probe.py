"""Finds the release point of a scheduler write by holding the forward, not by reading a declaration.

The **release point** is the first stage such that, with the forward held right after it, the write lands. A trial closes
one gate, issues a launch through the real runner and barrier, waits until the forward stands at the gate, and then asks
two things: has the barrier opened, and has a write behind it landed? They differ where the runtime adds a hold of its own.
"Not landed" is concluded from lanes that are known to stand, and only where nobody but the runtime knows (CUDA, donation
holds) from a bound, which is a multiple of a landing time measured in the same run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from warfence.core.batch import Batch
from warfence.core.errors import FenceError
from warfence.core.forwards import PlannedForward
from warfence.core.modes import FenceMode, Region
from warfence.host.landing import bound_s
from warfence.serve.fixture import Fixture

END = "end"  # the release point of a write that lands only after the whole forward


@dataclass(frozen=True, slots=True)
class Release:
    """The measured release point, twice: of the barrier, and of the write behind it. Stage names, or `end`."""

    opened: str
    landed: str


@dataclass(frozen=True, slots=True)
class Scratch:
    """A table cell that no forward of the probe reads, for writing to."""

    table: str
    cell: int


class Prober:
    """Probes one compiled, gated forward under one fence."""

    def __init__(self, fixture: Fixture, planned: PlannedForward, batch: Batch, scratch: Scratch) -> None:
        self._program = planned.forward.program
        self._fixture, self._planned, self._batch, self._scratch = fixture, planned, batch, scratch
        self._value = 0
        self._bound_s = bound_s(self._landing_s())

    def release(self, fence: FenceMode) -> Release:
        """Binary search over the gates of one forward; then both neighbours of each answer are tried again.

        Raises FenceError when the trials contradict each other (the release point is not one point).
        """
        positions = self._positions(fence)
        seen: dict[str, tuple[bool, bool]] = {}

        def trial(position: str, reading: int) -> bool:
            if position not in seen:
                seen[position] = self.trial(position, fence)
            return seen[position][reading]

        def search(reading: int) -> int:
            # Everything before low does not pass, high does: after the forward nothing is left that could hold a write.
            low, high = 0, len(positions) - 1
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if trial(positions[middle], reading) else (middle + 1, high)
            return low

        opened, landed = search(0), search(1)
        for reading, at in ((0, opened), (1, landed)):
            self._confirm(positions, at, reading, fence)
        return Release(positions[opened], positions[landed])

    def trial(self, position: str, fence: FenceMode) -> tuple[bool, bool]:
        """(barrier opened, write landed) with the forward held at this gate."""
        fixture = self._fixture
        with fixture.held(self._planned, self._batch, position) as outputs:
            fixture.barrier(outputs.launch, fence)
            opened = fixture.schedule.settle(self._bound_s)
            self._write()
            landed = fixture.schedule.settle(self._bound_s)
        outputs.result()
        fixture.settle()
        return opened, landed

    def _positions(self, fence: FenceMode) -> tuple[str, ...]:
        """Where to hold. Without a barrier only the runtime orders, from the moment that a reader was handed to it: the
        search then begins at the gate behind which the region of the last reader stands ready."""
        positions = (*self._program.gate_positions(), END)
        boundary = self._program.read_boundary()
        if fence is not FenceMode.OFF or boundary is None or boundary.region is Region.LOAD_BATCH:
            return positions
        first = self._program.region(boundary.region)[0].name
        return positions[positions.index(self._program.before(first)) :]

    def _confirm(self, positions: tuple[str, ...], at: int, reading: int, fence: FenceMode) -> None:
        for i, expected in ((at, True), (at - 1, False)):
            if i >= 0 and positions[i] != END and self.trial(positions[i], fence)[reading] is not expected:
                what = ("the barrier opens", "the write lands")[reading]
                raise FenceError(
                    f"probe of '{self._program.name}': held after '{positions[i]}', {what} in one trial and not in "
                    f"another; release found at '{positions[at]}'"
                )

    def _landing_s(self) -> float:
        """How long a write takes that nothing holds, from the call until the lane is idle."""
        schedule = self._fixture.schedule
        self._write()
        schedule.synchronize()
        start = time.perf_counter()
        self._write()
        schedule.synchronize()
        return time.perf_counter() - start

    def _write(self) -> None:
        self._value += 1
        self._fixture.write(self._scratch.table, [self._scratch.cell], [self._value])
