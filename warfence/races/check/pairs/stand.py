"""A recorded backend with two tables and small forwards, on which the pairs are played one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warfence.core.backend import FORWARD, PLAN, SCHEDULE, ArraySpec, Backend, Forward, Outputs
from warfence.core.batch import Batch, BatchLayout, BatchRow, pack
from warfence.core.fence import Ticket
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import ForwardProgram, Stage
from warfence.races.check.events import Event
from warfence.races.check.log_file import Log
from warfence.races.check.recording import Recorded
from warfence.races.check.report import Report, check

T, MAP = "t", "map"
SHAPE, LAYOUT = (3, 4), BatchLayout(1, 1)

Reads = tuple[str, ...]  # the tables of one stage


@dataclass(frozen=True)
class Issued:
    """One launch, and the tickets that can be had of it: before its replay, of its marker, after its replay."""

    number: int
    outputs: Outputs
    before: Ticket
    after: Ticket
    marker: Ticket | None


class Stand:
    """The three lanes of a backend, tables `t` and `map`, and forwards whose stages read some of them."""

    def __init__(self, inner: Backend) -> None:
        self.events: list[Event] = []
        self.backend = Recorded(inner, self.events.append)
        self.F, self.S, self.P = (self.backend.lane(name) for name in (FORWARD, SCHEDULE, PLAN))
        self._tables = self.backend.tables({T: ArraySpec(SHAPE), MAP: ArraySpec(SHAPE)})
        self.backend.load({}, {})
        self._made: dict[object, Forward] = {}
        self._launches = 0

    def report(self, play: Callable[[Stand], object]) -> Report:
        """Play one program and check its log. Afterwards all lanes are idle, and the log is empty."""
        self.events.clear()
        try:
            play(self)
            return check(Log(tuple(self.events)))
        finally:
            for lane in (self.F, self.S, self.P):
                lane.synchronize()

    def forward(self, *replay: Reads, load: Reads = (), marker: int | None = None) -> Forward:
        """A forward whose replay has these stages: `read.0`, `read.1`, ... marker: after which of them it stands."""
        key = (replay, load, marker)
        if key not in self._made:
            stages = [_stage("load", Region.LOAD_BATCH, load, first=True)]
            stages += [_stage(f"read.{i}", Region.REPLAY, reads) for i, reads in enumerate(replay)]
            stages.append(_stage("end", Region.TAIL, ()))
            program = ForwardProgram(f"pair {len(self._made)}", ForwardMode.DECODE, LAYOUT, tuple(stages), ("mix",))
            after = f"read.{marker}" if marker is not None else None
            self._made[key] = self.backend.compile(program, marker_after=after)
        return self._made[key]

    def launch(self, forward: Forward, batch: Batch | None = None) -> Issued:
        """Issue all three regions. Every ticket is recorded, and orders nothing until somebody waits for it."""
        self._launches += 1
        number = self._launches
        forward.load_batch(batch or pack(LAYOUT, [BatchRow(1, 0, (0,), (0,), False, 0.0, 1.0, ())]), number)
        before = self.F.record(number)
        forward.replay(number)
        marker = forward.marker.ticket(number) if forward.marker is not None else None
        after = self.F.record(number)
        return Issued(number, forward.tail(number), before, after, marker)

    def write(self, lane: Any, table: str = T, row: int = 1) -> None:
        """Write one row of a table on the lane."""
        cells = np.arange(row * SHAPE[1], (row + 1) * SHAPE[1], dtype=np.int32)
        self._tables.write(lane, table, cells, np.ones(SHAPE[1], np.int32))


def _stage(name: str, region: Region, reads: Reads, first: bool = False) -> Stage:
    takes = ("req_pool_indices",) if first else ("req_pool_indices", "mix")
    return Stage(name, region, "mix", reads=reads, takes=takes, gives=("mix",), attrs={"tables": reads, "column": 0})
