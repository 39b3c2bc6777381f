"""A backend that logs whatever passes its interface, in the order of the host's calls, and hands it on.

It uses nothing but `warfence.core.backend`, so it records any backend. What a backend does behind the interface it cannot
see; `unseen` says so in sentences, for the log's header.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np
from jaxtyping import Float32, Int32

from warfence.core.backend import FORWARD, ArraySpec, Backend, Capabilities, Lane, SharedTables
from warfence.core.errors import FenceError
from warfence.core.fence import Ticket
from warfence.core.program import ForwardProgram, Gated
from warfence.races.check.events import HOST, Event
from warfence.races.check.places import call_site
from warfence.races.check.recorded_forward import RecordedForward, Words
from warfence.races.check.sources import Append, RecordedSource, Sources

MOST_RUNS = 8  # intervals of one write; what lies closest together is joined beyond that
UNSEEN = (
    "What the backend does behind its interface: a wait that it was told of and does not keep looks kept.",
    "A stage reads the whole of each table that it declares, whichever rows its batch names.",
    f"A write of more than {MOST_RUNS} runs of cells also covers the smallest gaps between them.",
    "A batch counts as read until its launch is over, and as written right before it is loaded; a change of its words "
    "is noticed when it is loaded again.",
    "Private state of forwards is used by the forward lane alone, and is left out; gates order nothing here.",
)
GUARDED = "This backend's runtime guards table writes itself: a write that races here is held, or a launch refused."


class RecordedLane:
    """Implements `warfence.core.backend.Lane`."""

    def __init__(self, inner: Lane, sources: Sources) -> None:
        self.inner, self.name = inner, inner.name
        self._sources, self._append = sources, sources.append

    def wait(self, ticket: Ticket) -> None:
        event, source = self._sources.of(ticket.source)
        place = call_site(2)
        try:
            self.inner.wait(Ticket(ticket.launch, source))
        except FenceError:
            self._append(Event("refused", self.name, ticket.launch, event=event, where=place))
            raise
        self._append(Event("wait", self.name, ticket.launch, event=event, where=place))

    def wait_lane(self, other: Lane) -> None:
        self.inner.wait_lane(other.inner if isinstance(other, RecordedLane) else other)
        self._append(Event("wait_lane", self.name, other=other.name, where=call_site(2)))

    def record(self, launch: int) -> Ticket:
        source = self.inner.record(launch).source
        return Ticket(launch, self._sources.recorded(source, self.name, launch, call_site(2)))

    def settle(self, bound_s: float) -> bool:
        idle = self.inner.settle(bound_s)
        if idle:
            self._append(Event("host_sync", HOST, other=self.name, where=call_site(2)))
        return idle

    def synchronize(self) -> None:
        self.inner.synchronize()
        self._append(Event("host_sync", HOST, other=self.name, where=call_site(2)))


class RecordedTables:
    """Implements `warfence.core.backend.SharedTables`. sizes: cells of each table."""

    def __init__(self, inner: SharedTables, sizes: Mapping[str, int], append: Append) -> None:
        self._inner, self._sizes, self._append = inner, sizes, append
        self._writers: dict[str, dict[str, None]] = {}

    def write(self, lane: Lane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]) -> None:
        self._inner.write(lane.inner if isinstance(lane, RecordedLane) else lane, name, cells, values)
        self._writers.setdefault(name, {})[lane.name] = None
        place = call_site(2)
        for begin, end in runs(cells):
            self._append(Event("write", lane.name, 0, f"write {name}", name, begin, end, where=place))

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        """Logged as a synchronisation with every lane that wrote the table, and a read by the host."""
        table = self._inner.snapshot_to_host(name)
        place = call_site(2)
        for lane in self._writers.get(name, ()):
            self._append(Event("host_sync", HOST, other=lane, where=place))
        self._append(Event("read", HOST, 0, f"snapshot {name}", name, 0, self._sizes[name], where=place))
        return table


class Recorded:
    """Implements `core.backend.Backend` around another one. `append` takes each event: `list.append`, `LogWriter.append`.

    Lanes, tickets and tables of this backend belong together; those of the inner one are foreign here.
    """

    def __init__(self, inner: Backend, append: Callable[[Event], object]) -> None:
        self.inner = inner
        self.name, self.device = inner.name, inner.device
        self.capabilities: Capabilities = inner.capabilities
        self._append, self._sources, self._words = append, Sources(append), Words(append)
        self._lanes: dict[str, RecordedLane] = {}
        self._sizes: dict[str, int] = {}

    @property
    def compilations(self) -> int:
        return self.inner.compilations

    def lane(self, name: str) -> RecordedLane:
        if name not in self._lanes:
            self._lanes[name] = RecordedLane(self.inner.lane(name), self._sources)
        return self._lanes[name]

    def tables(self, specs: Mapping[str, ArraySpec]) -> RecordedTables:
        self._sizes = {name: prod(spec.shape) for name, spec in specs.items()}
        return RecordedTables(self.inner.tables(specs), self._sizes, self._append)

    def load(self, params: Mapping[str, Float32[np.ndarray, "..."]], state: Mapping[str, ArraySpec]) -> None:
        self.inner.load(params, state)

    def compile(
        self, program: ForwardProgram, *, marker_after: str | None = None, gated: Gated = False
    ) -> RecordedForward:
        forward = self.inner.compile(program, marker_after=marker_after, gated=gated)
        return RecordedForward(forward, self._sizes, self._sources, self._words)

    def state_to_host(self, name: str) -> np.ndarray:
        state = self.inner.state_to_host(name)
        self._append(Event("host_sync", HOST, other=FORWARD, where=call_site(2)))
        return state

    def report(self) -> Mapping[str, object]:
        return self.inner.report()

    def close(self) -> None:
        self.inner.close()


def unseen(backend: Backend) -> tuple[str, ...]:
    """What a log of this backend does not tell, for its header."""
    return (*UNSEEN, GUARDED) if backend.capabilities.guards_writes else UNSEEN


def runs(cells: Int32[np.ndarray, " n"], most: int = MOST_RUNS) -> list[tuple[int, int]]:
    """The cells as sorted intervals [begin, end), at most `most`: the smallest gaps are closed first."""
    if not len(cells):
        return []
    ordered = np.sort(cells)
    gaps = np.diff(ordered)
    cuts = np.flatnonzero(gaps > 1)
    if len(cuts) >= most:
        cuts = np.sort(cuts[np.argsort(gaps[cuts], kind="stable")[len(cuts) - most + 1 :]])
    begins = [ordered[0], *ordered[cuts + 1]]
    ends = [*ordered[cuts], ordered[-1]]
    return [(int(begin), int(end) + 1) for begin, end in zip(begins, ends, strict=True)]


__all__ = ["Recorded", "RecordedLane", "RecordedSource", "RecordedTables", "runs", "unseen"]
