"""The timer of the strict backend. Its time is virtual: one thing that a lane does takes one step, whatever it is."""

from __future__ import annotations

from collections.abc import Mapping

from warfence.core.abilities import StageTime, Stamp
from warfence.core.backend import FORWARD
from warfence.parity.strict.lanes import StrictLane
from warfence.parity.strict.machine import Machine


class StrictTimer:
    """Implements `warfence.core.abilities.Timer` by counting what the machine did."""

    about: Mapping[str, str] = {
        "clock": "virtual: each thing that a lane does takes one step, and things happen only while the host blocks",
        "slice": "one entry of the log, one step long; a wait is there where it is over",
    }
    unit = "steps"
    unix_ns: int | None = None

    def __init__(self, machine: Machine) -> None:
        self._machine, self._zero = machine, 0

    def start(self) -> None:
        self._zero = len(self._machine.steps)

    def now(self) -> float:
        return float(len(self._machine.steps) - self._zero)

    def before(self, lane: StrictLane) -> Stamp:
        place = self._enqueued(lane)
        return lambda: self._end_of(lane.name, place, -1)

    def after(self, lane: StrictLane) -> Stamp:
        place = self._enqueued(lane) - 1
        return lambda: self._end_of(lane.name, place, 0)

    def stages(self) -> list[StageTime]:
        done = enumerate(self._machine.steps[self._zero :])
        return [
            StageTime(step.launch, (step.stage,), at, at + 1)
            for at, step in done
            if step.kind == "stage" and step.lane == FORWARD
        ]

    def _enqueued(self, lane: StrictLane) -> int:
        return sum(step.lane == lane.name for step in self._machine.steps) + len(lane.queue.items)

    def _end_of(self, lane: str, place: int, shift: int) -> float | None:
        """The step at whose end the lane's thing number `place` was done, shifted."""
        ends = [time for time, step in enumerate(self._machine.steps, 1) if step.lane == lane]
        return float(ends[place] + shift - self._zero) if 0 <= place < len(ends) else None
