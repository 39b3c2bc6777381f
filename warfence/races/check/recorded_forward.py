"""A forward whose stages stand in the log where the host issued them, in their order on the forward lane."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np

from warfence.core.backend import FORWARD, Forward, Marker, Outputs
from warfence.core.batch import Batch
from warfence.core.gates import Gates
from warfence.core.modes import Region
from warfence.core.program import ForwardProgram
from warfence.races.check.events import HOST, Event
from warfence.races.check.places import call_site
from warfence.races.check.sources import Append, Sources

OUTPUTS = "outputs"
KEPT = 64  # staging arrays that may be loaded again


class Words:
    """Staging memory on the host, by the array that owns it: named while it lives, and written whenever it differs."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._owners: dict[int, tuple[np.ndarray, str, int]] = {}  # (owner, its name, checksum when it was loaded last)
        self._count = 0

    def loaded(self, words: np.ndarray, place: str) -> tuple[str, int, int]:
        """(resource, begin, end), in words, of a batch that is about to be loaded; logs that the host had written it."""
        owner = words
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        begin = (words.ctypes.data - owner.ctypes.data) // words.itemsize
        checksum = zlib.crc32(words.tobytes())
        known = self._owners.pop(id(owner), None)
        if known is None:
            self._count += 1
        name = known[1] if known is not None else f"batch words {self._count}"
        self._owners[id(owner)] = (owner, name, checksum)
        if len(self._owners) > KEPT:
            del self._owners[next(iter(self._owners))]
        cells = name, begin, begin + words.size
        if known is None or known[2] != checksum:
            self._append(Event("write", HOST, 0, "pack", *cells, where=place))
        return cells


class RecordedOutputs:
    """Implements `warfence.core.backend.Outputs`."""

    def __init__(self, inner: Outputs, append: Append) -> None:
        self.launch, self._inner, self._append = inner.launch, inner, append

    @property
    def device_s(self) -> float | None:
        return self._inner.device_s

    def result(self) -> Mapping[str, np.ndarray]:
        found = self._inner.result()
        place = call_site(2)
        self._append(Event("host_sync", HOST, self.launch, event=_over(self.launch), where=place))
        self._append(Event("read", HOST, self.launch, "result", OUTPUTS, self.launch, self.launch + 1, where=place))
        return found


class RecordedForward:
    """Implements `core.backend.Forward`. sizes: cells of each table. It has a marker and gates where the inner one has."""

    def __init__(self, inner: Forward, sizes: Mapping[str, int], sources: Sources, words: Words) -> None:
        self._inner, self._sources, self._append, self._words = inner, sources, sources.append, words
        self.marker = Marker(inner.marker.stage) if inner.marker is not None else None
        self._batch = ("", 0, 0)
        marker = self.marker.stage if self.marker is not None else None
        self._steps = {region: self._templates(region, marker, sizes) for region in Region}

    @property
    def program(self) -> ForwardProgram:
        return self._inner.program

    @property
    def gates(self) -> Gates | None:
        return self._inner.gates

    def load_batch(self, batch: Batch, launch: int) -> None:
        self._inner.load_batch(batch, launch)
        place = call_site(2)
        self._batch = self._words.loaded(batch.words, place)
        self._append(Event("read", FORWARD, launch, "load the batch", *self._batch, where=place))
        self._issue(Region.LOAD_BATCH, launch, place)

    def replay(self, launch: int) -> None:
        self._inner.replay(launch)
        self._issue(Region.REPLAY, launch, call_site(2))

    def tail(self, launch: int) -> RecordedOutputs:
        outputs = self._inner.tail(launch)
        place = call_site(2)
        self._issue(Region.TAIL, launch, place)
        self._append(Event("read", FORWARD, launch, OUTPUTS, *self._batch, where=place))
        self._append(Event("write", FORWARD, launch, OUTPUTS, OUTPUTS, launch, launch + 1, where=place))
        self._append(Event("record", FORWARD, launch, event=_over(launch), generation=1, where=place))
        return RecordedOutputs(outputs, self._append)

    def _templates(self, region: Region, marker: str | None, sizes: Mapping[str, int]) -> list[Event | None]:
        """The accesses of a region without their launch; None where the marker stands.

        A stage that reads no table writes its own place in the workspace: it is an operation that a fence may wait for.
        """
        made: list[Event | None] = []
        for step in self.program.steps(region, marker, False):
            if step.stage is None:
                made.append(None)
                continue
            reads = [Event("read", FORWARD, 0, step.name, name, 0, sizes[name]) for name in step.stage.reads]
            at = self.program.index(step.name)
            made += reads or [Event("write", FORWARD, 0, step.name, f"workspace of {self.program.name}", at, at + 1)]
        return made

    def _issue(self, region: Region, launch: int, place: str) -> None:
        for step in self._steps[region]:
            if step is not None:
                kind, lane, _, stage, resource, begin, end, *_ = step
                self._append(Event(kind, lane, launch, stage, resource, begin, end, where=place))
            elif self.marker is not None and self._inner.marker is not None:
                source = self._inner.marker.ticket(launch).source
                name = f"marker after {self.marker.stage}"
                self.marker.issued(launch, self._sources.recorded(source, FORWARD, launch, place, name))


def _over(launch: int) -> str:
    return f"end of launch {launch}"
