"""Scenarios on torch: host lanes on the CPU, streams and captured graphs on CUDA."""

from __future__ import annotations

import torch

from warfence.core.errors import InputError
from warfence.races.replay.machine import Machines
from warfence_torch.tools.replay.host import MACHINES


def on_cpu() -> list[Machines]:
    """Tensors that worker lanes read and write."""
    return [MACHINES]


def on_cuda() -> list[Machines]:
    """InputError: there is no device."""
    if not torch.cuda.is_available():
        raise InputError("backend torch: no CUDA device here (torch.cuda.is_available() is False); use --device cpu")
    from warfence_torch.tools.replay.cuda import CudaMachines

    return [CudaMachines()]
