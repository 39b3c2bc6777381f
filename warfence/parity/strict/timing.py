"""The timer of the strict backend. Its time is virtual: one thing that a lane does takes one step, whatever it is."""

from __future__ import annotations

from collections.abc import Mapping

from warfence.core.abilities import StageTime, Stamp
from warfence.parity.strict.lanes import StrictLane
from warfence.parity.strict.machine import Machine


class StrictTimer:
    """Implements `warfence.core.abilities.Timer` by counting entries of the machine's log."""

    about: Mapping[str, str] = {
        "clock": "virtual: each thing that a lane does takes one step, and things happen only while the host blocks",
        "slice": "one entry of the log, one step long; a wait is there where it is over",
    }
    unit = "steps"
    unix_ns: int | None = None

    def __init__(self, machine: Machine) -> None:
        self._machine, self._zero = machine, 0

    def start(self) -> None:
        self._zero = len(self._machine.log)

    def now(self) -> float:
        return float(len(self._machine.log) - self._zero)

    def before(self, lane: StrictLane) -> Stamp:
        place = self._enqueued(lane)
        return lambda: self._end_of(lane.name, place, -1)

    def after(self, lane: StrictLane) -> Stamp:
        place = self._enqueued(lane) - 1
        return lambda: self._end_of(lane.name, place, 0)

    def stages(self) -> list[StageTime]:
        entries = self._machine.log[self._zero :]
        return [
            StageTime(e.launch, (e.name,), e.time - 1 - self._zero, e.time - self._zero)
            for e in entries
            if e.kind == "stage"
        ]

    def _enqueued(self, lane: StrictLane) -> int:
        return sum(entry.lane == lane.name for entry in self._machine.log) + len(lane.queue.items)

    def _end_of(self, lane: str, place: int, shift: int) -> float | None:
        """The step at whose end the lane's entry number `place` was done, shifted."""
        entries = [entry for entry in self._machine.log if entry.lane == lane]
        return float(entries[place].time + shift - self._zero) if 0 <= place < len(entries) else None
