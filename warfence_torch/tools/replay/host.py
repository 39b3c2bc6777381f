"""Scenarios on torch's CPU: tensors that worker lanes read and write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from warfence.host.lanes import WorkerLane
from warfence.races.replay.gates import StepGates
from warfence.races.replay.host_machine import HostMachine
from warfence.races.replay.machine import Machine, Part, Seen, value_of
from warfence.races.replay.parts import donates
from warfence.races.replay.sizes import lanes, sizes
from warfence.races.scenarios.operations import Memories, Op
from warfence.races.scenarios.trace import Trace
from warfence_torch.tools.planting.stages import stage

NO_DONATION = "torch has no donation: nothing takes the memory of a tensor over"
NO_BLOCKS = "which block the C library hands out next is not the program's to say"


class HostMachines:
    """Implements `warfence.races.replay.machine.Machines`."""

    name = "torch/cpu"
    guards = False

    def lacks(self, trace: Trace) -> str:
        if any(op.kind == "allocates" and op.memory for op in trace.ops):
            return NO_BLOCKS
        return NO_DONATION if donates(trace) else ""

    def make(self, trace: Trace, memories: Memories) -> Machine:
        return machine(trace, cells(trace, memories))


def cells(trace: Trace, memories: Memories) -> dict[str, Tensor]:
    """A zeroed int32 tensor for each memory of a trace."""
    return {name: torch.zeros(size, dtype=torch.int32) for name, size in sizes(trace, memories).items()}


def machine(trace: Trace, cells: Mapping[str, Tensor]) -> HostMachine:
    """Host lanes over these tensors."""
    gates, seen = StepGates(), Seen()
    return HostMachine(lanes(trace), gates, seen, _Tensors(cells, gates, seen))


class _Tensors:
    """Implements `warfence.races.replay.host_machine.Memory`."""

    def __init__(self, cells: Mapping[str, Tensor], gates: StepGates, seen: Seen) -> None:
        self._cells = cells
        self._gates, self._seen = gates, seen

    def bind(self, parts: Sequence[Part], lane: WorkerLane) -> Callable[[], None]:
        return partial(self._run, parts, lane)

    def host(self, part: Part) -> None:
        for at, one in enumerate(part.reaches):
            if one.verb == "reads":
                copy = self._cells[one.memory][one.begin : one.end].clone()  # an operation, which a watch sees
                self._seen[part.id, at] = tuple(copy.tolist())
        for one in part.reaches:
            if one.verb == "writes":
                self._cells[one.memory][one.begin : one.end].fill_(value_of(part.id))

    def names(self, op: Op) -> None:
        """No arrays here."""

    def settle(self) -> str:
        return ""

    def final(self) -> Mapping[str, tuple[int, ...]]:
        return {name: tuple(cells.tolist()) for name, cells in self._cells.items()}

    def _run(self, parts: Sequence[Part], lane: WorkerLane) -> None:
        for part in parts:
            self._gates.pass_through(part.id, lane.stand)
            with stage(part.name):
                self.host(part)
            self._gates.finish(part.id)
