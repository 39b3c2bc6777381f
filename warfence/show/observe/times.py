"""The times of a timeline as an observer: when each call was made, and when the lanes got to it.

It uses nothing but the backend's own `Timer`. Nothing is noted before `Tracer.start`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from warfence.core.abilities import Stamp, Timer, TimesStages
from warfence.core.backend import FORWARD, ArraySpec, Backend, Forward
from warfence.core.errors import InputError
from warfence.core.program import ForwardProgram
from warfence.show.observe.observer import Call

CALLS = {"load_batch": "load_batch", "replay": "replay", "tail": "tail", "result": "result"}


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


class _Begun(NamedTuple):
    called: float
    stamp: Stamp | None = None
    point: Point | None = None


class Tracer:
    """Implements `warfence.show.observe.Observer`. `warfence.show.timeline.build.timeline` makes a timeline of it."""

    timer: Timer

    def __init__(self) -> None:
        self.on = False
        self.noted: list[Noted] = []
        self.programs: dict[int, ForwardProgram] = {}  # of each launch
        self.issued = 0  # the launch that was issued last

    def begin(self, backend: Backend) -> None:
        """InputError for a backend that cannot tell when its stages run."""
        if not isinstance(backend, TimesStages):
            raise InputError(
                f"backend '{backend.name}' cannot tell when its stages run: it has no time_stages() "
                "(see warfence.core.abilities); trace one that has it"
            )
        self.timer = backend.time_stages()
        self.backend, self.device = backend.name, backend.device

    def start(self) -> None:
        """The lanes must be idle. Forgets what was noted before."""
        self.noted.clear()
        self.programs.clear()
        self.timer.start()
        self.on = True

    def tables(self, specs: Mapping[str, ArraySpec]) -> None:
        """Nothing runs."""

    def compiled(self, forward: Forward) -> None:
        """Nothing runs."""

    def before(self, call: Call) -> _Begun | None:
        if call.kind == "load_batch" and call.forward is not None:
            self.programs[call.launch] = call.forward.program
        if not self.on:
            return None
        point = call.label
        if call.kind == "wait_lane" and call.other is not None:
            point = Point(call.other.name, 0, f"lane {call.other.name}", stamp=self.timer.after(call.other))
        stamp = self.timer.before(call.lane) if call.kind in ("wait", "wait_lane", "write") else None
        return _Begun(self.timer.now(), stamp, point)

    def after(self, call: Call, begun: Any) -> Point | None:
        if call.kind == "tail" and call.error is None:
            self.issued = call.launch
        if begun is not None and call.error is None:
            self._note(call, begun)
        if call.error is not None:
            return None
        if call.kind == "record" and call.lane is not None:
            stamp = self.timer.after(call.lane) if self.on else None
            return Point(call.lane.name, call.launch, f"ticket of launch {call.launch}", stamp=stamp)
        if call.kind == "replay" and call.forward is not None and call.forward.marker is not None:
            return Point(FORWARD, call.launch, f"ticket of launch {call.launch}", stage=call.forward.marker.stage)
        return None

    def _note(self, call: Call, begun: _Begun) -> None:
        returned = self.timer.now()
        if call.kind in ("wait", "wait_lane", "write") and call.lane is not None:
            other = call.other.name if call.other is not None else ""
            name = {"wait": "wait for the ticket", "wait_lane": f"wait for lane {other}", "write": call.name}[call.kind]
            launch = {"wait": call.launch, "wait_lane": 0, "write": self.issued}[call.kind]
            detail = {"cells": str(len(call.cells))} if call.cells is not None else {}
            end = self.timer.after(call.lane)
            kind = "write" if call.kind == "write" else "wait"
            self.noted.append(
                Noted(kind, call.lane.name, name, begun.called, returned, launch, begun.stamp, end, begun.point, detail)
            )
            return
        if call.kind == "record" and call.lane is not None:
            name = f"record {call.lane.name}"
        elif call.kind == "source_synchronize":
            name = "the host blocks"
        elif call.kind in CALLS:
            name = CALLS[call.kind]
        else:
            return
        self.noted.append(Noted("call", FORWARD, name, begun.called, returned, call.launch))
