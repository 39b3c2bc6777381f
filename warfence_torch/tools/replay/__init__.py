"""Scenarios on torch: host lanes on the CPU, streams and captured graphs on CUDA."""

from __future__ import annotations

import torch

from warfence.core.errors import InputError
from warfence.races.replay.machine import Machines


def machines(device: str) -> list[Machines]:
    """What replays scenarios on this device. InputError: there is none."""
    if device == "cpu":
        from warfence_torch.tools.replay.host import HostMachines

        return [HostMachines()]
    if not torch.cuda.is_available():
        raise InputError("backend torch: no CUDA device here (torch.cuda.is_available() is False); use --device cpu")
    from warfence_torch.tools.replay.cuda import CudaMachines

    return [CudaMachines()]
