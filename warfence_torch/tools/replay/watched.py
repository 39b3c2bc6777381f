"""Scenarios as torch programs under `watch`: host lanes on the CPU; streams, events, graphs and the allocator on CUDA."""

from __future__ import annotations

from typing import Any

import torch

from warfence.core.errors import InputError
from warfence.races.check.findings import Findings
from warfence.races.replay.caller import call_all
from warfence.races.replay.machine import Machine
from warfence.races.replay.sizes import lanes
from warfence.races.scenarios.operations import Memories
from warfence.races.scenarios.steps import Trace
from warfence_torch.tools.replay.cuda import CudaCells, CudaMachine, CudaMachines
from warfence_torch.tools.replay.host import MACHINES, TENSORS
from warfence_torch.tools.watching import watch


class WatchPlayer:
    """Implements `warfence.races.replay.judged.Player`. device: cpu or cuda."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device

    def lacks(self, trace: Trace, memories: Memories) -> str:
        return (MACHINES if self.device == "cpu" else CudaMachines()).lacks(trace)

    def play(self, trace: Trace, memories: Memories) -> Findings:
        """Play under a watch of all memory of the trace, and check. NameError: the program uses a block that is gone."""
        prepared = Prepared(self.device, trace, memories)
        with watch(shared=prepared.shared, host=prepared.pinned, names=prepared.names, blocks=prepared.blocks) as log:
            machine = prepared.play()
        machine.close()
        if machine.refusals:
            raise InputError(machine.refusals[0][1])
        return log.check()


class Prepared:
    """The memory and the lanes of one trace; graphs are captured by `play`, so that a watch sees them.

    blocks: it is about blocks that the device's allocator hands on.
    """

    def __init__(self, device: str, trace: Trace, memories: Memories) -> None:
        self.device, self._trace, self._memories = device, trace, memories
        self.blocks = device == "cuda" and any(op.kind == "allocates" and op.lane != "host" for op in trace.ops)
        self.names: dict[Any, str] = {}
        self.pinned: dict[str, torch.Tensor] = {}
        if device == "cpu":
            self.shared = TENSORS.cells(trace, memories)
            return
        self._streams = {name: torch.cuda.Stream() for name in lanes(trace)}
        self.names = {stream: name for name, stream in self._streams.items()}
        self._cells = CudaCells(trace, memories)
        self.shared = self._cells.device
        pool = {f"{name} {at}": one for name, many in self._cells.pool.items() for at, one in enumerate(many)}
        self.pinned = {**self._cells.pinned, **pool}

    def play(self) -> Machine:
        """Make all calls, with no gate between them."""
        machine: Machine
        if self.device == "cpu":
            machine = TENSORS.machine(self._trace, self.shared)
            machine.gates.release()
        else:
            machine = CudaMachine(self._trace, self._memories, self._streams, self._cells, ungated=True)
        try:
            call_all(self._trace, machine)
        except BaseException:
            machine.close()
            raise
        return machine
