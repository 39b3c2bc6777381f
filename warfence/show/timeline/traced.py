"""A backend that notes when what passes its interface was called, and when the lanes got to it, and hands it on.

It uses nothing but `warfence.core.backend` and the backend's own `Timer`. Nothing is noted before `Tracer.start`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32, Int32

from warfence.core.abilities import Stamp, Timer, TimesStages
from warfence.core.backend import FORWARD, ArraySpec, Backend, Forward, Lane, Marker, Outputs, SharedTables
from warfence.core.batch import Batch
from warfence.core.errors import InputError
from warfence.core.fence import Ticket, TicketSource
from warfence.core.gates import Gates
from warfence.core.program import ForwardProgram, Gated


@dataclass(frozen=True, slots=True)
class Point:
    """Where a ticket was recorded: behind a stage of a launch (a marker), or where a lane stood."""

    lane: str
    launch: int
    name: str
    stage: str | None = None
    stamp: Stamp | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """One call of the interface. launch: as in `Slice`. called, returned: of the host. begin, end: on its lane, where it
    enqueued something."""

    kind: str  # call, write or wait
    lane: str
    name: str
    called: float
    returned: float
    launch: int = 0
    begin: Stamp | None = None
    end: Stamp | None = None
    waits_for: Point | None = None
    detail: Mapping[str, str] = field(default_factory=dict)


class Tracer:
    """What was noted of one backend. `start` begins; `warfence.show.timeline.build.timeline` makes a timeline of it."""

    def __init__(self, inner: Backend) -> None:
        if not isinstance(inner, TimesStages):
            raise InputError(
                f"backend '{inner.name}' cannot tell when its stages run: it has no time_stages() "
                "(see warfence.core.abilities); trace one that has it"
            )
        self.timer: Timer = inner.time_stages()
        self.backend, self.device = inner.name, inner.device
        self.on = False
        self.noted: list[Noted] = []
        self.programs: dict[int, ForwardProgram] = {}  # of each launch
        self.issued = 0  # the launch that was issued last

    def start(self) -> None:
        """The lanes must be idle. Forgets what was noted before."""
        self.noted.clear()
        self.programs.clear()
        self.timer.start()
        self.on = True

    @contextmanager
    def call(self, name: str, launch: int = 0) -> Iterator[None]:
        """A call whose work on the lanes is noted elsewhere, or that has none."""
        if not self.on:
            yield
            return
        called = self.timer.now()
        yield
        self.noted.append(Noted("call", FORWARD, name, called, self.timer.now(), launch))

    @contextmanager
    def work(
        self, kind: str, lane: Lane, name: str, launch: int = 0, waits_for: Point | None = None, **detail: str
    ) -> Iterator[None]:
        """A call that enqueues something on a lane of the inner backend."""
        if not self.on:
            yield
            return
        begin, called = self.timer.before(lane), self.timer.now()
        yield
        returned, end = self.timer.now(), self.timer.after(lane)
        self.noted.append(Noted(kind, lane.name, name, called, returned, launch, begin, end, waits_for, detail))

    def here(self, lane: Lane, launch: int, name: str) -> Point:
        """Where the lane of the inner backend stands now."""
        return Point(lane.name, launch, name, stamp=self.timer.after(lane) if self.on else None)


class TracedSource:
    """Implements `warfence.core.fence.TicketSource` around a backend's own source."""

    __slots__ = ("_tracer", "inner", "point")

    def __init__(self, inner: TicketSource, point: Point, tracer: Tracer) -> None:
        self.inner, self.point, self._tracer = inner, point, tracer

    def recorded_for(self) -> int | None:
        return self.inner.recorded_for()

    def done(self) -> bool:
        return self.inner.done()

    def synchronize(self) -> None:
        with self._tracer.call("the host blocks", self.point.launch):
            self.inner.synchronize()


class TracedLane:
    """Implements `warfence.core.backend.Lane`."""

    def __init__(self, inner: Lane, tracer: Tracer) -> None:
        self.inner, self.name, self._tracer = inner, inner.name, tracer

    def wait(self, ticket: Ticket) -> None:
        given = ticket.source
        source, point = (given.inner, given.point) if isinstance(given, TracedSource) else (given, None)
        with self._tracer.work("wait", self.inner, "wait for the ticket", ticket.launch, point):
            self.inner.wait(Ticket(ticket.launch, source))

    def wait_lane(self, other: Lane) -> None:
        if not isinstance(other, TracedLane):
            self.inner.wait_lane(other)  # foreign: refused there
            return
        point = self._tracer.here(other.inner, 0, f"lane {other.name}")
        with self._tracer.work("wait", self.inner, f"wait for lane {other.name}", waits_for=point):
            self.inner.wait_lane(other.inner)

    def record(self, launch: int) -> Ticket:
        with self._tracer.call(f"record {self.name}", launch):
            source = self.inner.record(launch).source
        point = self._tracer.here(self.inner, launch, f"ticket of launch {launch}")
        return Ticket(launch, TracedSource(source, point, self._tracer))

    def settle(self, bound_s: float) -> bool:
        return self.inner.settle(bound_s)

    def synchronize(self) -> None:
        self.inner.synchronize()


class TracedTables:
    """Implements `warfence.core.backend.SharedTables`."""

    def __init__(self, inner: SharedTables, tracer: Tracer) -> None:
        self._inner, self._tracer = inner, tracer

    def write(self, lane: Lane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]) -> None:
        own = lane.inner if isinstance(lane, TracedLane) else lane
        with self._tracer.work("write", own, name, self._tracer.issued, cells=str(len(cells))):
            self._inner.write(own, name, cells, values)

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        return self._inner.snapshot_to_host(name)


class TracedOutputs:
    """Implements `warfence.core.backend.Outputs`."""

    def __init__(self, inner: Outputs, tracer: Tracer) -> None:
        self.launch, self._inner, self._tracer = inner.launch, inner, tracer

    @property
    def device_s(self) -> float | None:
        return self._inner.device_s

    def result(self) -> Mapping[str, np.ndarray]:
        with self._tracer.call("result", self.launch):
            return self._inner.result()


class TracedForward:
    """Implements `warfence.core.backend.Forward`. It has a marker and gates where the inner one has."""

    def __init__(self, inner: Forward, tracer: Tracer) -> None:
        self._inner, self._tracer = inner, tracer
        self.marker = Marker(inner.marker.stage) if inner.marker is not None else None

    @property
    def program(self) -> ForwardProgram:
        return self._inner.program

    @property
    def gates(self) -> Gates | None:
        return self._inner.gates

    def load_batch(self, batch: Batch, launch: int) -> None:
        self._tracer.programs[launch] = self.program
        with self._tracer.call("load_batch", launch):
            self._inner.load_batch(batch, launch)

    def replay(self, launch: int) -> None:
        with self._tracer.call("replay", launch):
            self._inner.replay(launch)
        if self.marker is not None and self._inner.marker is not None:
            point = Point(FORWARD, launch, f"ticket of launch {launch}", stage=self.marker.stage)
            source = self._inner.marker.ticket(launch).source
            self.marker.issued(launch, TracedSource(source, point, self._tracer))

    def tail(self, launch: int) -> TracedOutputs:
        with self._tracer.call("tail", launch):
            outputs = self._inner.tail(launch)
        self._tracer.issued = launch
        return TracedOutputs(outputs, self._tracer)


class Traced:
    """Implements `warfence.core.backend.Backend` around another one. Its lanes, tickets and tables belong together."""

    def __init__(self, inner: Backend) -> None:
        self.inner, self.tracer = inner, Tracer(inner)
        self.name, self.device, self.capabilities = inner.name, inner.device, inner.capabilities
        self._lanes: dict[str, TracedLane] = {}

    @property
    def compilations(self) -> int:
        return self.inner.compilations

    def lane(self, name: str) -> TracedLane:
        if name not in self._lanes:
            self._lanes[name] = TracedLane(self.inner.lane(name), self.tracer)
        return self._lanes[name]

    def tables(self, specs: Mapping[str, ArraySpec]) -> TracedTables:
        return TracedTables(self.inner.tables(specs), self.tracer)

    def load(self, params: Mapping[str, Float32[np.ndarray, "..."]], state: Mapping[str, ArraySpec]) -> None:
        self.inner.load(params, state)

    def compile(
        self, program: ForwardProgram, *, marker_after: str | None = None, gated: Gated = False
    ) -> TracedForward:
        return TracedForward(self.inner.compile(program, marker_after=marker_after, gated=gated), self.tracer)

    def state_to_host(self, name: str) -> np.ndarray:
        return self.inner.state_to_host(name)

    def report(self) -> Mapping[str, object]:
        return self.inner.report()

    def close(self) -> None:
        self.inner.close()
