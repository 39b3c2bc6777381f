"""Scenarios as calls of the neutral interface on any backend, recorded: the checker judges what that backend executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate

from warfence.core.backend import FORWARD, PLAN, SCHEDULE, ArraySpec, Backend, Lane
from warfence.core.batch import Batch, BatchLayout, BatchRow, pack
from warfence.core.errors import FenceError
from warfence.core.fence import Ticket
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import ForwardProgram, Stage
from warfence.races.check.events import Event
from warfence.races.check.findings import Findings, check
from warfence.races.check.log_file import Log
from warfence.races.replay.caller import call_all
from warfence.races.replay.gates import StepGates
from warfence.races.replay.interface import CELLS, TABLES, Layout, Range, layout_of
from warfence.races.replay.machine import Gates, Part, Stand
from warfence.races.scenarios.operations import Memories, Op
from warfence.races.scenarios.steps import Trace
from warfence.serve.fixture import Fixture
from warfence.show.observe.log import EventLog
from warfence.show.observe.proxy import Observed

ROW = BatchLayout(1, 1)
Reads = tuple[str, ...]  # the tables of one stage


def recorded(backend: Backend, events: list[Event]) -> Backend:
    """The backend, with all that passes its interface in `events`."""
    return Observed(backend, EventLog(events.append))


def program_of(
    replay: Sequence[Reads], load: Sequence[Reads] = (), name: str = "scenario", breaks: tuple[int, ...] = ()
) -> ForwardProgram:
    """A forward whose stages read these tables: `load.0`, ... while the batch is loaded, then `read.0`, ..., and a tail.

    breaks: behind which stages of the replay the captured forward is broken.
    """
    regions = (("load", Region.LOAD_BATCH, load), ("read", Region.REPLAY, replay), ("end", Region.TAIL, ((),)))
    stages: list[Stage] = []
    for word, region, reads in regions:
        for at, tables in enumerate(reads):
            takes = ("req_pool_indices", "mix") if stages else ("req_pool_indices",)
            attrs = {"tables": tables, "column": 0}
            stages.append(Stage(f"{word}.{at}", region, "mix", tables, takes, ("mix",), attrs=attrs))
    return ForwardProgram(
        name, ForwardMode.DECODE, ROW, tuple(stages), ("mix",), tuple(f"read.{at}" for at in breaks)
    )  # fmt: skip


def one_row() -> Batch:
    """A batch in memory of its own."""
    return Batch(ROW, pack(ROW, [BatchRow(1, 0, (0,), (0,), False, 0.0, 1.0, ())]).words.copy())


class RecordedPlayer:
    """Implements `warfence.races.replay.judged.Player`. make: a fresh backend; another one is made after a refusal."""

    def __init__(self, make: Callable[[], Backend]) -> None:
        self._make = make
        self._events: list[Event] = []
        self._fixture: Fixture | None = None

    def lacks(self, trace: Trace, memories: Memories) -> str:
        return layout_of(trace, memories).lacks

    def play(self, trace: Trace, memories: Memories) -> Findings:
        """Play and check. FenceError: the backend refuses a call, at once or when the lane comes to it."""
        fixture = self._fixture = self._fixture or self._fresh()
        self._events.clear()
        calls = _Calls(trace, fixture, layout_of(trace, memories))
        try:
            call_all(trace, calls)
            calls.refill()
            report = check(Log(tuple(self._events)))
            calls.settle()
        except FenceError:
            self._fixture = None
            with suppress(Exception):  # what was refused may fail to close too
                fixture.close()
            raise
        return report

    def close(self) -> None:
        if self._fixture is not None:
            self._fixture.close()

    def _fresh(self) -> Fixture:
        return Fixture(recorded(self._make(), self._events), {name: ArraySpec((CELLS, 1)) for name in TABLES})


class _Calls:
    """Implements `warfence.races.replay.machine.Lanes` by a recorded backend."""

    def __init__(self, trace: Trace, fixture: Fixture, layout: Layout) -> None:
        self.gates: Gates = StepGates()
        self.gates.release()
        self._ops, self._fixture, self._layout = trace.ops, fixture, layout
        self._lanes: Mapping[str, Lane] = {FORWARD: fixture.lane, SCHEDULE: fixture.schedule}
        self._held: dict[str, Ticket] = {}
        self._numbers: dict[int, int] = {}  # of the scenario's launches
        self._last = 0
        self._batches = {at: one_row() for at in layout.batches}
        self._refilled: set[Range] = set()  # since they were loaded

    def launch(self, lane: str, executables: Sequence[Sequence[Part]]) -> None:
        parts = [part for executable in executables for part in executable]
        if self._layout.lanes[lane] == FORWARD:
            self._forward(executables, parts)
            return
        for part in parts:
            for one in part.reaches:
                found = self._layout.table(one)
                if found is not None:
                    table, first = found
                    cells = range(first, first + one.end - one.begin)
                    self._fixture.write(table, cells, [1] * len(cells), self._lane(lane))

    def _forward(self, executables: Sequence[Sequence[Part]], parts: Sequence[Part]) -> None:
        """A launch is replayed; an access by itself happens while its batch is loaded."""
        call = self._ops[parts[0].call] if parts else None
        accesses = [part for part in parts if part.op.kind != "records"]
        reads = [self._reads(part) for part in accesses] or [()]
        marked = next((at for at, part in enumerate(parts) if part.op.kind == "records"), None)
        if call is not None and call.kind == "access":
            program = program_of(((),), reads)
        else:
            ends = list(accumulate(sum(part.op.kind != "records" for part in one) for one in executables))
            name = "scenario" if marked is None else f"records {parts[marked].op.event}"  # a marker for each event
            program = program_of(reads, (), name, tuple(end - 1 for end in ends[:-1]))
        forward = self._fixture.forward(program, None if marked is None else f"read.{marked - 1}")
        loaded = next((at for part in accesses for one in part.reaches if (at := self._layout.batch(one))), None)
        number = self._last = next(self._fixture.launches)
        self._fixture.launch(forward, one_row() if loaded is None else self._batches[loaded], number)
        self._refilled.discard(loaded or ("", 0, 0))
        if call is not None:
            self._numbers[call.launch] = number
        if marked is not None and forward.marker is not None:
            self._held[parts[marked].op.event] = forward.marker.ticket(number)

    def _reads(self, part: Part) -> Reads:
        found = [self._layout.table(one) for one in part.reaches]
        return tuple(dict.fromkeys(one[0] for one in found if one is not None))

    def _lane(self, name: str) -> Lane:
        lane = self._layout.lanes[name]
        return self._fixture.plan if lane == PLAN else self._lanes[lane]

    def host(self, part: Part) -> None:
        """The host fills a batch in place; what it only reads nobody else writes."""
        for one in part.reaches:
            at = self._layout.batch(one)
            if one.verb == "writes" and at is not None:
                self._batches[at].words[0] += 1
                self._refilled.add(at)

    def refill(self) -> None:
        """A change of a batch is noticed when it is loaded again: load all that were filled since."""
        for at in sorted(self._refilled):
            self._fixture.launch(self._fixture.forward(program_of(((),))), self._batches[at])

    def record(self, lane: str, event: str) -> None:
        self._held[event] = self._lane(lane).record(self._last)

    def wait(self, lane: str, event: str, launch: int = 0) -> None:
        """What the interface refuses (law 4) is told in the log, and orders nothing."""
        held = self._held.get(event)
        if held is None:
            with suppress(FenceError):
                self._lane(lane).wait(Ticket(self._last + 1, _Never()))
        elif launch and self._numbers.get(launch, self._last + 1) != held.launch:
            with suppress(FenceError):
                self._lane(lane).wait(Ticket(self._numbers.get(launch, self._last + 1), held.source))
        else:
            self._lane(lane).wait(held)

    def wait_lane(self, lane: str, other: str) -> None:
        self._lane(lane).wait_lane(self._lane(other))

    def await_record(self, lane: str, event: str, number: int) -> None:
        raise FenceError(f"record {number} of {event} cannot be awaited by its number: a wait binds at its call")

    def sync(self, event: str) -> Stand:
        """What was never recorded counts as complete, and there is no ticket to ask."""
        held = self._held.get(event)
        return Stand(lambda: True, lambda: None) if held is None else Stand(held.source.done, held.source.synchronize)

    def sync_lane(self, lane: str) -> Stand:
        return Stand(lambda: False, self._lane(lane).synchronize)

    def names(self, op: Op) -> None:
        """Memory that the host allocates is a fresh batch already, by its name in the trace."""

    def settle(self) -> None:
        """Block until all lanes are idle, so that the next trace begins with none at work."""
        self._fixture.settle()
        self._fixture.plan.synchronize()

    def close(self) -> None:
        """The backend goes on to the next trace."""


class _Never:
    """A ticket source on which nothing was ever recorded."""

    def recorded_for(self) -> int | None:
        return None

    def done(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""
