"""The adversary: forces, step by step, the worst order that the waits permit. Nothing here is luck or timing.

Each launch is held at a gate right before a shared read. Meanwhile the scheduler goes on to its next table writes. Only
when these have landed, or are known to stand behind the fence, is the forward let go. With a right fence the text is
intact; with none, or one that opens too early, the forward reads what was written for somebody else, every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from warfence.core.backend import Forward, Lane
from warfence.core.errors import FenceError
from warfence.core.gates import Gates
from warfence.core.program import ForwardProgram, Gated

Hold = Literal["first", "last"]


@dataclass(slots=True)
class OrderCounts:
    """Of the launches held: how often the next writes landed before the read, and how often they waited."""

    landed_before_read: int = 0
    waited: int = 0


def gate_of(program: ForwardProgram, hold: Hold) -> str | None:
    """The gate position right before the first (or last) shared read; None where nothing is read."""
    readers = program.readers()
    return program.before(readers[0 if hold == "first" else -1].name) if readers else None


def gates_of(program: ForwardProgram, hold: Hold) -> Gated:
    """What to compile such a program with: that one gate, or none."""
    gate = gate_of(program, hold)
    return frozenset({gate}) if gate is not None else False


class ForcedOrder:
    """Holds one launch at a time before its first (or last) shared read. Implements `warfence.core.scheduler.Hooks`.

    bound_s: how long to wait for writes to land where only the runtime knows whether they can.
    """

    def __init__(self, schedule: Lane, forward: Lane, hold: Hold = "first", bound_s: float = 0.25) -> None:
        self.counts = OrderCounts()
        self._schedule, self._forward = schedule, forward
        self._hold, self._bound_s = hold, bound_s
        self._held: tuple[Gates, str] | None = None

    def before_launch(self, forward: Forward) -> None:
        """Close the gate in front of the read. Call right before the launch is issued."""
        position = gate_of(forward.program, self._hold)
        if position is None:
            return
        if forward.gates is None:
            raise FenceError(f"'{forward.program.name}' has no gates: compile it gated to force an order")
        forward.gates.close(position)
        self._held = (forward.gates, position)

    def after_launch(self) -> None:
        """Wait until the forward stands at the gate, so that everything the scheduler writes from here on comes before
        the read, whatever else the threads of a backend do."""
        if self._held is not None:
            gates, position = self._held
            gates.await_reached(position)

    def after_plan(self) -> None:
        """Let the scheduler's writes land if anything permits it, then let the held launch go on to its end."""
        if self._held is None:
            return
        (gates, position), self._held = self._held, None
        if self._schedule.settle(self._bound_s):
            self.counts.landed_before_read += 1
        else:
            self.counts.waited += 1
        gates.open(position)
        self._forward.synchronize()
