"""Scenarios on torch: host lanes on the CPU, streams and captured graphs on CUDA."""

from __future__ import annotations

from warfence.replay.machine import Machines


def machines(device: str) -> list[Machines]:
    """What replays scenarios on this device."""
    if device == "cpu":
        from warfence_torch.replay.host import HostMachines

        return [HostMachines()]
    from warfence_torch.replay.cuda import CudaMachines

    return [CudaMachines()]
