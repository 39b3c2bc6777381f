"""Scenarios on torch's CPU: tensors that worker lanes read and write. A watch sees each access as an operation."""

from __future__ import annotations

import torch
from torch import Tensor

from warfence.races.replay.host_cells import CellMachines, Library
from warfence_torch.tools.planting.stages import stage


def _read(cells: Tensor) -> list[int]:
    found: list[int] = cells.clone().tolist()  # the copy is an operation; `tolist` alone is none
    return found


TENSORS = Library(lambda size: torch.zeros(size, dtype=torch.int32), _read, stage)
MACHINES = CellMachines("torch/cpu", TENSORS)
