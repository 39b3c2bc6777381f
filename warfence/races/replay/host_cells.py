"""Scenarios on worker lanes, over arrays of any library that takes slices: numpy's, or a framework's on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from warfence.host.lanes import WorkerLane
from warfence.races.replay.gates import StepGates
from warfence.races.replay.host_machine import HostMachine
from warfence.races.replay.machine import Machine, Part, Seen, value_of
from warfence.races.replay.parts import donates
from warfence.races.replay.sizes import lanes, sizes
from warfence.races.scenarios.operations import Memories, Op
from warfence.races.scenarios.steps import Trace

NO_DONATION = "nothing takes the memory of an array over: there is no donation"
NO_BLOCKS = "which block the C library hands out next is not the program's to say"


def _read(cells: Any) -> list[int]:
    found: list[int] = cells.tolist()
    return found


@dataclass(frozen=True, slots=True)
class Library:
    """How cells are made and used, from the thread of any lane.

    zeros: an int32 array of so many cells, all 0, of which `array[a:b] = value` writes a part. read: what is in a part,
    `array[a:b]`. around: entered around each access of a lane, with its name.
    """

    zeros: Callable[[int], Any]
    read: Callable[[Any], list[int]] = _read
    around: Callable[[str], AbstractContextManager[object]] = nullcontext

    def cells(self, trace: Trace, memories: Memories) -> dict[str, Any]:
        """An array for each memory of a trace."""
        return {name: self.zeros(size) for name, size in sizes(trace, memories).items()}

    def machine(self, trace: Trace, cells: Mapping[str, Any]) -> HostMachine:
        """Worker lanes over these arrays."""
        gates, seen = StepGates(), Seen()
        return HostMachine(lanes(trace), gates, seen, _Cells(self, cells, gates, seen))


@dataclass
class CellMachines:
    """Implements `warfence.races.replay.machine.Machines`. name: as printed, such as `numpy/cpu`."""

    name: str
    library: Library
    guards: bool = False

    def lacks(self, trace: Trace) -> str:
        if any(op.kind == "allocates" and op.memory for op in trace.ops):
            return NO_BLOCKS
        return NO_DONATION if donates(trace) else ""

    def make(self, trace: Trace, memories: Memories) -> Machine:
        return self.library.machine(trace, self.library.cells(trace, memories))


class _Cells:
    """Implements `warfence.races.replay.host_machine.Memory`."""

    def __init__(self, library: Library, cells: Mapping[str, Any], gates: StepGates, seen: Seen) -> None:
        self._library, self._cells, self._gates, self._seen = library, cells, gates, seen

    def bind(self, parts: Sequence[Part], lane: WorkerLane) -> Callable[[], None]:
        return partial(self._run, parts, lane)

    def host(self, part: Part) -> None:
        for at, one in enumerate(part.reaches):
            if one.verb == "reads":
                read = self._library.read(self._cells[one.memory][one.begin : one.end])
                self._seen[part.id, at] = tuple(read)
        for one in part.reaches:
            if one.verb == "writes":
                self._cells[one.memory][one.begin : one.end] = value_of(part.id)

    def names(self, op: Op) -> None:
        """No arrays that the host could keep or drop."""

    def settle(self) -> str:
        return ""

    def final(self) -> Mapping[str, tuple[int, ...]]:
        return {name: tuple(cells.tolist()) for name, cells in self._cells.items()}

    def _run(self, parts: Sequence[Part], lane: WorkerLane) -> None:
        for part in parts:
            self._gates.pass_through(part.id, lane.stand)
            with self._library.around(part.name):
                self.host(part)
            self._gates.finish(part.id)
