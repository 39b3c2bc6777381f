"""The event log as an observer: whatever passes the interface, in the order of the host's calls.

What a backend does behind the interface it cannot see; `unseen` says so in sentences, for the log's header. A stage stands in
the log where the host issued it, in its order on the forward lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from warfence.core.backend import FORWARD, ArraySpec, Backend, Forward
from warfence.core.errors import FenceError
from warfence.core.fence import AtLeast
from warfence.core.modes import Region
from warfence.races.check.events import HOST, Event
from warfence.races.check.runs import MOST_RUNS, runs
from warfence.show.observe.names import SourceNames, Words
from warfence.show.observe.observer import Call

OUTPUTS = "outputs"
UNSEEN = (
    "What the backend does behind its interface: a wait that it was told of and does not keep looks kept.",
    "A stage reads the whole of each table that it declares, whichever rows its batch names.",
    f"A write of more than {MOST_RUNS} runs of cells also covers the smallest gaps between them.",
    "A batch counts as read until its launch is over, and as written right before it is loaded; a change of its words "
    "is noticed when it is loaded again.",
    "Private state of forwards is used by the forward lane alone, and is left out; gates order nothing here.",
)
GUARDED = "This backend's runtime guards table writes itself: a write that races here is held, or a launch refused."


class EventLog:
    """Implements `warfence.show.observe.Observer`. `append` takes each event: `list.append`, `LogWriter.append`."""

    def __init__(self, append: Callable[[Event], object]) -> None:
        self._append, self._names, self._words = append, SourceNames(), Words()
        self._sizes: dict[str, int] = {}
        self._writers: dict[str, dict[str, None]] = {}
        self._steps: dict[int, dict[Region, list[Event | None]]] = {}  # of each forward, by identity
        self._forwards: list[Forward] = []  # kept, so that no other one gets their identity
        self._batches: dict[int, tuple[str, int, int]] = {}

    def begin(self, backend: Backend) -> None:
        """Nothing is asked of the backend itself."""

    def tables(self, specs: Mapping[str, ArraySpec]) -> None:
        self._sizes = {name: prod(spec.shape) for name, spec in specs.items()}

    def compiled(self, forward: Forward) -> None:
        marker = forward.marker.stage if forward.marker is not None else None
        self._steps[id(forward)] = {region: self._templates(forward, region, marker) for region in Region}
        self._forwards.append(forward)

    def before(self, call: Call) -> None:
        """Everything is logged once it was done."""

    def after(self, call: Call, begun: Any) -> str | None:
        lane = call.lane.name if call.lane is not None else HOST
        if call.error is not None:
            if call.kind == "wait" and isinstance(call.error, FenceError):
                self._append(Event("refused", lane, call.launch, event=self._event(call), where=call.where))
            return None
        match call.kind:
            case "wait":
                self._wait(call, lane)
            case "wait_lane":
                other = call.other.name if call.other is not None else ""
                self._append(Event("wait_lane", lane, other=other, where=call.where))
            case "record":
                return self._recorded(call, lane, f"ticket of {lane}")
            case "settle" | "synchronize":
                if call.answer:
                    self._append(Event("host_sync", HOST, other=lane, where=call.where))
            case "source_done" | "source_synchronize":
                if call.answer:
                    self._append(Event("host_sync", HOST, event=self._event(call), where=call.where))
            case "state":
                self._append(Event("host_sync", HOST, other=FORWARD, where=call.where))
            case "write":
                self._write(call, lane)
            case "snapshot":
                self._snapshot(call)
            case "result":
                self._append(Event("host_sync", HOST, call.launch, event=_over(call.launch), where=call.where))
                cells = OUTPUTS, call.launch, call.launch + 1
                self._append(Event("read", HOST, call.launch, "result", *cells, where=call.where))
            case _:
                return self._region(call)
        return None

    # -- tables

    def _write(self, call: Call, lane: str) -> None:
        self._writers.setdefault(call.name, {})[lane] = None
        for begin, end in runs(call.cells) if call.cells is not None else ():
            self._append(Event("write", lane, 0, f"write {call.name}", call.name, begin, end, where=call.where))

    def _snapshot(self, call: Call) -> None:
        """A synchronisation with every lane that wrote the table, and a read by the host."""
        for lane in self._writers.get(call.name, ()):
            self._append(Event("host_sync", HOST, other=lane, where=call.where))
        cells = call.name, 0, self._sizes[call.name]
        self._append(Event("read", HOST, 0, f"snapshot {call.name}", *cells, where=call.where))

    # -- launches

    def _region(self, call: Call) -> str | None:
        launch, where, forward = call.launch, call.where, call.forward
        assert forward is not None
        if call.kind == "load_batch" and call.batch is not None:
            loaded, cells = self._words.loaded(call.batch.words)
            if loaded:
                self._append(Event("write", HOST, 0, "pack", *cells, where=where))
            self._batches[id(forward)] = cells
            self._append(Event("read", FORWARD, launch, "load the batch", *cells, where=where))
        region = {"load_batch": Region.LOAD_BATCH, "replay": Region.REPLAY, "tail": Region.TAIL}[call.kind]
        label = self._issue(call, region)
        if call.kind == "tail":
            self._append(Event("read", FORWARD, launch, OUTPUTS, *self._batches[id(forward)], where=where))
            self._append(Event("write", FORWARD, launch, OUTPUTS, OUTPUTS, launch, launch + 1, where=where))
            self._append(Event("record", FORWARD, launch, event=_over(launch), generation=1, where=where))
        return label

    def _issue(self, call: Call, region: Region) -> str | None:
        label = None
        forward = call.forward
        assert forward is not None
        for step in self._steps[id(forward)][region]:
            if step is not None:
                kind, lane, _, stage, resource, begin, end, *_ = step
                self._append(Event(kind, lane, call.launch, stage, resource, begin, end, where=call.where))
            elif forward.marker is not None and call.source is not None:
                label = self._recorded(call, FORWARD, f"marker after {forward.marker.stage}")
        return label

    def _templates(self, forward: Forward, region: Region, marker: str | None) -> list[Event | None]:
        """The accesses of a region without their launch; None where the marker stands.

        A stage that reads no table writes its own place in the workspace: it is an operation that a fence may wait for.
        """
        made: list[Event | None] = []
        program = forward.program
        for step in program.steps(region, marker, False):
            if step.stage is None:
                made.append(None)
                continue
            reads = [Event("read", FORWARD, 0, step.name, name, 0, self._sizes[name]) for name in step.stage.reads]
            at = program.index(step.name)
            made += reads or [Event("write", FORWARD, 0, step.name, f"workspace of {program.name}", at, at + 1)]
        return made

    def _wait(self, call: Call, lane: str) -> None:
        if call.label is None and isinstance(call.source, AtLeast):  # by value, and before its launch
            name = self._names.awaited(call.source)
            self._append(Event("await", lane, call.launch, event=name, generation=1, where=call.where))
        else:
            self._append(Event("wait", lane, call.launch, event=self._event(call), where=call.where))

    # -- names

    def _recorded(self, call: Call, lane: str, kind: str) -> str:
        name, generation = self._names.recorded(call.source, kind)
        self._append(Event("record", lane, call.launch, event=name, generation=generation, where=call.where))
        return name

    def _event(self, call: Call) -> str:
        """The name of what is waited for. What was not recorded here has a name that nothing records."""
        known = call.label or self._names.ahead(call.source)
        return known or f"{type(call.source).__name__} that was recorded elsewhere, or never"


def unseen(backend: Backend) -> tuple[str, ...]:
    """What a log of this backend does not tell, for its header."""
    return (*UNSEEN, GUARDED) if backend.capabilities.guards_writes else UNSEEN


def _over(launch: int) -> str:
    return f"end of launch {launch}"
