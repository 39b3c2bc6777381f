"""Where the shared reads of a program end, found by tracing its kernels."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from warfence.core.program import ForwardProgram
from warfence.host.stage_calls import bind
from warfence.parity.boundary import Boundary, Kept, find
from warfence_torch.kernels import KERNELS
from warfence_torch.tools.planting.shared import SharedTensors
from warfence_torch.tools.planting.stages import stage
from warfence_torch.tools.planting.trace import Pass, Subject
from warfence_torch.words import field_views

_KEPT = Kept()


def boundary_of(program: ForwardProgram, fixed: Mapping[str, Tensor], tables: Mapping[str, Tensor]) -> Boundary:
    """Run the kernels once on a batch of padding, under a trace, each as its stage. fixed: tables, state and weights."""
    shapes = {name: tuple(table.shape) for name, table in tables.items()}
    return _KEPT.find(program, shapes, lambda: _trace(program, fixed, tables))


def _trace(program: ForwardProgram, fixed: Mapping[str, Tensor], tables: Mapping[str, Tensor]) -> Boundary:
    device = next(iter(tables.values())).device
    words = torch.zeros(program.layout.words, dtype=torch.int32, device=device)

    def run() -> None:
        workspace = field_views(program.layout, words)
        for each in program.stages:
            with stage(each.name):
                bind(each, fixed, KERNELS)(workspace)

    trace = Pass(Subject(run, SharedTensors(tables), {}, device.type, torch.inference_mode))
    trace.run()
    return find(traced.operation for traced in trace.seen)
