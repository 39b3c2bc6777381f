"""Scenarios on JAX: executables on the CPU client, over host memory that they alias, and over arrays that are donated."""

from __future__ import annotations

from warfence.races.replay.machine import Machines
from warfence_jax.tools.replay.cpu import JaxMachines


def on_cpu() -> list[Machines]:
    """Tables that only waits guard, then tables that the runtime guards, too."""
    return [JaxMachines("aliased"), JaxMachines("donated")]
