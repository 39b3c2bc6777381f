"""Scenarios on JAX: executables on the CPU client, over host memory that they alias, and over arrays that are donated."""

from __future__ import annotations

from warfence.core.errors import InputError
from warfence.races.replay.machine import Machines


def machines(device: str) -> list[Machines]:
    """What replays scenarios on this device: tables that only waits guard, then tables that the runtime guards, too."""
    if device != "cpu":
        raise InputError(f"backend jax replays scenarios on the CPU client, not on '{device}'; choose --device cpu")
    from warfence_jax.tools.replay.cpu import JaxMachines

    return [JaxMachines("aliased"), JaxMachines("donated")]
