"""A recorded backend with two tables, and launches of which every ticket is at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from warfence.core.backend import ArraySpec, Backend, Forward, Lane, Outputs
from warfence.core.fence import Ticket
from warfence.races.check.events import Event
from warfence.races.check.findings import Findings, check
from warfence.races.check.log_file import Log
from warfence.serve.fixture import Fixture
from warfence.show.observe.player import Reads, one_row, program_of, recorded

T, MAP = "t", "map"
SHAPE = (3, 4)
READ, LATE, THINK = (T,), (MAP,), ()


@dataclass(frozen=True)
class Issued:
    """One launch, and the tickets that can be had of it: before its replay, of its marker, after its replay."""

    number: int
    outputs: Outputs
    before: Ticket
    after: Ticket
    marker: Ticket | None


class Recording:
    """The three lanes F, S and P of a recorded backend, and its log."""

    def __init__(self, inner: Backend) -> None:
        self.events: list[Event] = []
        self.fixture = Fixture(recorded(inner, self.events), {T: ArraySpec(SHAPE), MAP: ArraySpec(SHAPE)})
        self.F, self.S, self.P = self.fixture.lane, self.fixture.schedule, self.fixture.plan

    def report(self, play: Callable[[Recording], object]) -> Findings:
        """Play one program and check its log. Afterwards all lanes are idle."""
        self.events.clear()
        try:
            play(self)
            return check(Log(tuple(self.events)))
        finally:
            self.fixture.settle()
            self.P.synchronize()

    def forward(self, *replay: Reads, marker: int | None = None) -> Forward:
        """A forward whose replay has these stages: `read.0`, `read.1`, ... marker: after which of them it stands."""
        return self.fixture.forward(program_of(replay), None if marker is None else f"read.{marker}")

    def launch(self, forward: Forward) -> Issued:
        """Issue all three regions. Every ticket is recorded, and orders nothing until somebody waits for it."""
        number = next(self.fixture.launches)
        forward.load_batch(one_row(), number)
        before = self.F.record(number)
        forward.replay(number)
        marker = forward.marker.ticket(number) if forward.marker is not None else None
        after = self.F.record(number)
        return Issued(number, forward.tail(number), before, after, marker)

    def write(self, lane: Lane, table: str = T, row: int = 1) -> None:
        """Write one row of a table on the lane."""
        self.fixture.write(table, np.arange(row * SHAPE[1], (row + 1) * SHAPE[1]), np.ones(SHAPE[1]), lane)
