"""Small logs in host order, for tests of what the checker says: each call appends what the host would have enqueued.

    p = Program()
    with p.replay("F", 1) as step:
        step(R("t", 3)); step(W("m")); step(record="e")
    p.wait("S", "e").run("S", W("t", 3))

Lanes have short names: F forward, S schedule, P plan, C result copy, X transfer, H host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from warfence.races.check.events import HOST, Event, Kind
from warfence.races.check.log_file import Log

LANES = {"F": "forward", "S": "schedule", "P": "plan", "C": "copy", "X": "transfer", "H": HOST}


class Touch(NamedTuple):
    """One access of an operation."""

    kind: Kind
    resource: str
    begin: int
    end: int


def R(resource: str, begin: int = 0, end: int | None = None) -> Touch:
    """A read of cells [begin, end), of one cell where no end is given."""
    return Touch("read", resource, begin, begin + 1 if end is None else end)


def W(resource: str, begin: int = 0, end: int | None = None) -> Touch:
    """A write, as `R`."""
    return Touch("write", resource, begin, begin + 1 if end is None else end)


class Program:
    """A log that grows. Every method returns the program, so that calls can be chained in host order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._operations = 0
        self._generations: dict[str, int] = {}

    @property
    def log(self) -> Log:
        return Log(tuple(self.events))

    def run(self, lane: str, *touches: Touch, launch: int = 0, stage: str = "") -> Program:
        """One operation with all these accesses."""
        self._operations += 1
        name = stage or f"operation {self._operations}"
        for kind, resource, begin, end in touches:
            self.events.append(Event(kind, LANES[lane], launch, name, resource, begin, end))
        return self

    def record(self, lane: str, event: str, launch: int = 0) -> Program:
        """Record the event on the lane; each record has the next generation."""
        generation = self._generations[event] = self._generations.get(event, 0) + 1
        self.events.append(Event("record", LANES[lane], launch, event=event, generation=generation))
        return self

    def wait(self, lane: str, event: str, launch: int = 0) -> Program:
        """The lane waits for what the event holds now; `launch`: whose record the caller believes that to be."""
        self.events.append(Event("wait", LANES[lane], launch, event=event))
        return self

    def wait_lane(self, lane: str, other: str) -> Program:
        """`lane>other` of the scenarios."""
        self.events.append(Event("wait_lane", LANES[lane], other=LANES[other]))
        return self

    def sync(self, event: str) -> Program:
        """The host blocks for the event, or asks it until the answer is yes."""
        self.events.append(Event("host_sync", HOST, event=event))
        return self

    @contextmanager
    def replay(self, lane: str, launch: int = 0) -> Iterator[Callable[..., None]]:
        """One launch: each call of what this yields is a step, `record=` a marker between two steps."""

        def step(*touches: Touch, record: str = "") -> None:
            if touches:
                self.run(lane, *touches, launch=launch)
            if record:
                self.record(lane, record, launch)

        yield step
