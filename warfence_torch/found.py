"""Where the shared reads of a program end, found by tracing its kernels."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from warfence.boundary import Boundary, find
from warfence.kernels import bind
from warfence.program import ForwardProgram
from warfence_torch.kernels import KERNELS
from warfence_torch.planting.shared import SharedTensors
from warfence_torch.planting.stages import stage
from warfence_torch.planting.trace import Pass, Subject
from warfence_torch.words import field_views

KEPT = 512
_FOUND: dict[tuple[ForwardProgram, tuple[tuple[str, torch.Size], ...]], Boundary] = {}


def boundary_of(program: ForwardProgram, fixed: Mapping[str, Tensor], tables: Mapping[str, Tensor]) -> Boundary:
    """Run the kernels once on a batch of padding, under a trace, each as its stage.

    fixed: tables, state and weights. Engines are made again and again of few programs, so what was found is kept.
    """
    key = (program, tuple((name, table.shape) for name, table in tables.items()))
    if key not in _FOUND:
        if len(_FOUND) >= KEPT:
            _FOUND.clear()
        _FOUND[key] = _trace(program, fixed, tables)
    return _FOUND[key]


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
