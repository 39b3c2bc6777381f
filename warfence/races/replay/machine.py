"""What a backend implements to replay scenarios: lanes, events and memory of int32 cells, as flat calls of host threads.

Every access has a gate in front of it. The write of step s leaves the value s + 1 in its cells, so that a read says whose
write it saw; 0 is what was there before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from warfence.races.scenarios.operations import Memories, Op, Reach
from warfence.races.scenarios.steps import Step, Trace

Seen = dict[tuple[int, int], tuple[int, ...]]  # (step, which of its accesses) -> what it read


class Stand(NamedTuple):
    """Where a host thread is to stand. reached: whether it may go on. block: returns once it may."""

    reached: Callable[[], bool]
    block: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Part:
    """One access, or one record in a launch. step: None in a call that the explorer says is refused. call: its place."""

    op: Op
    step: Step | None
    call: int

    @property
    def id(self) -> int:
        return -1 if self.step is None else self.step.id

    @property
    def name(self) -> str:
        """What to call it in a log."""
        return self.op.stage or (f"line {self.op.line}" if self.step is None else f"step {self.id}")

    @property
    def reaches(self) -> tuple[Reach, ...]:
        """The accesses with the memory that their names mean at the call."""
        return self.op.reaches if self.step is None else self.step.reaches


class Gates(Protocol):
    """A gate in front of each access. All are closed at the start."""

    def open(self, step: int) -> None:
        """Let this access run."""
        ...

    def finished(self, step: int) -> bool:
        """Whether the access has run."""
        ...

    def count(self) -> int:
        """How often a gate was reached or left so far."""
        ...

    def release(self) -> None:
        """Open everything, for good."""
        ...

    def pass_through(self, step: int, stand: Callable[[Callable[[], bool], Callable[[], object]], None]) -> None:
        """Called by a host thread in front of its access: `stand(reached, block)` while the gate is closed."""
        ...

    def finish(self, step: int) -> None:
        """Called by a host thread behind its access."""
        ...


class Lanes(Protocol):
    """Lanes and memory for one run of one trace: what its calls are made on. Those of one scenario thread come from one thread.

    gates: of all accesses.
    """

    @property
    def gates(self) -> Gates: ...

    def launch(self, lane: str, executables: Sequence[Sequence[Part]]) -> None:
        """Enqueue accesses and records, in order. Raises what the runtime says to a call that it refuses."""
        ...

    def host(self, part: Part) -> None:
        """Access pinned memory here and now."""
        ...

    def record(self, lane: str, event: str) -> None: ...

    def wait(self, lane: str, event: str, launch: int = 0) -> None:
        """For the record that the event holds now. launch: the one whose record the program means; 0: whichever it is."""
        ...

    def wait_lane(self, lane: str, other: str) -> None: ...

    def await_record(self, lane: str, event: str, number: int) -> None:
        """The lane stands until the record of that number is done, wherever it is called."""
        ...

    def sync(self, event: str) -> Stand:
        """For the record that the event holds now."""
        ...

    def sync_lane(self, lane: str) -> Stand: ...

    def names(self, op: Op) -> None:
        """The host allocates, frees, keeps, views or drops."""
        ...

    def close(self) -> None:
        """End the lanes. Safe after a failure."""
        ...


class Machine(Lanes, Protocol):
    """Lanes on which an order can be forced.

    seen: what the reads read, once all has run. refusals: (call, message) of calls that the runtime refused behind the call.
    """

    seen: Seen
    refusals: list[tuple[int, str]]

    def settle(self) -> str:
        """Block until each lane is idle or stands. Empty when that is certain; `busy` when a lane is on its way still;
        `runtime` when only the runtime knows whether a lane stands."""
        ...

    def count(self) -> int:
        """Grows whenever a lane gets on."""
        ...

    def stands(self, lane: str) -> bool:
        """Whether there is work on the lane that is not done."""
        ...

    def release(self) -> None:
        """Let everybody go who stands, whatever they wait for."""
        ...

    def final(self) -> Mapping[str, tuple[int, ...]]:
        """What is in the memory, once all has run."""
        ...


class Machines(Protocol):
    """Makes machines of one backend on one device. name: as printed, such as `jax/cpu/aliased`."""

    name: str
    guards: bool  # the runtime itself may hold or refuse what would overtake a reader

    def lacks(self, trace: Trace) -> str:
        """Why this backend cannot express the calls of a trace; empty when it can."""
        ...

    def make(self, trace: Trace, memories: Memories) -> Machine:
        """A machine for one run of the trace. All that takes long (compiling, capturing) is done here."""
        ...


def value_of(step: int) -> int:
    """What the write of a step leaves in its cells."""
    return step + 1
