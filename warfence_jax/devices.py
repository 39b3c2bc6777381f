"""Which device holds what: the CPU client has the tables and the stages that read them, the compute device the rest.

With a GPU and donated tables the two differ on purpose: XLA:GPU has one compute stream, so a donated write to a table on the
device would land after every kernel that was dispatched before it, whatever the fence says. Tables of the kind "device" are
written by streams of our own, and stand where they are read.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Device
from jax.typing import DTypeLike

from warfence.core.backend import ArraySpec
from warfence.core.errors import InputError

KINDS = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu"}


@dataclass(frozen=True, slots=True)
class Devices:
    """tables: where shared tables live and are read. compute: everything else."""

    tables: Device
    compute: Device

    @property
    def split(self) -> bool:
        return bool(self.tables != self.compute)

    def all(self) -> tuple[Device, ...]:
        return (self.tables, self.compute) if self.split else (self.compute,)


def find_devices(device: str, together: bool = False) -> Devices:
    """The devices for "cpu", "gpu" or "cuda" (the same); InputError says what there is. together: tables
    on the compute device."""
    if device not in KINDS:
        raise InputError(f"backend jax: unknown device '{device}'; choose one of: {', '.join(KINDS)}")
    found = {}
    for kind in dict.fromkeys(("cpu", KINDS[device])):
        try:
            found[kind] = jax.devices(kind)[0]
        except RuntimeError as error:
            there = ", ".join(sorted({d.platform for d in jax.devices()}))
            raise InputError(
                f"backend jax: device '{device}' needs a {kind} client, and there is none; this JAX has: {there}. "
                f"Install 'jax[cuda13]' for a GPU, and leave JAX_PLATFORMS unset or let it name every client"
            ) from error
    compute = found[KINDS[device]]
    return Devices(compute if together else found["cpu"], compute)


def zeros(spec: ArraySpec, device: Device) -> jax.Array:
    """A zeroed array in memory of its own, so that it can be donated."""
    dtype: DTypeLike = spec.dtype
    return jnp.zeros(spec.shape, dtype, device=device)
