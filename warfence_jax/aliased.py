"""Tables in host memory that device arrays alias. Nothing guards them but the fence.

The twin of torch's silent corruption: the schedule lane's thread writes the memory in place while a program that was
dispatched may yet read it (jax-ml/jax #37830: `device_put` aliases a writeable numpy array; `block_until_ready` on the
device array is no fence).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import jax
import numpy as np
from jax import Array, Device
from jaxtyping import Int32

from warfence.core.backend import ArraySpec, Lane
from warfence.core.errors import InputError
from warfence.host.own import own_lane
from warfence_jax.lanes import JaxLane
from warfence_jax.tables import Cells, Version, check_write
from warfence_jax.tokens import Promise

ALIGNMENT = 64  # bytes; below it the CPU client copies instead of aliasing


class AliasedTables:
    """Tables in host memory that device arrays alias; the schedule lane's thread writes them in place."""

    def __init__(self, specs: Mapping[str, ArraySpec], device: Device) -> None:
        self.specs = specs
        self.refused = 0  # a view never dies
        self._device = device
        self._host = {n: aligned_zeros(s.shape) for n, s in specs.items()}
        self._versions = {n: Version(n, 0, handle=jax.device_put(a, device)) for n, a in self._host.items()}
        self._writes: dict[str, int] = dict.fromkeys(specs, 0)
        self._last: dict[str, dict[str, Promise]] = {n: {} for n in specs}  # of each table, the last write of each lane
        for name, array in self._host.items():
            handle = self._versions[name].handle
            if handle is None or handle.unsafe_buffer_pointer() != array.ctypes.data:
                raise InputError(f"table '{name}': this JAX copied the host memory instead of aliasing it")

    def capture(self, lane: JaxLane, names: Iterable[str]) -> dict[str, Version]:
        return {n: self._versions[n] for n in names}

    def taken(self, version: Version, reader: Promise) -> None:
        """Nothing to note: no reader holds a write here."""

    def write(self, lane: Lane, name: str, cells: Cells, values: Cells) -> None:
        mine = own_lane(lane, JaxLane, name)
        check_write(self.specs, name, cells, values)
        flat = self._host[name].reshape(-1)
        self._writes[name] += 1

        def scatter(order: Array, wait: Array) -> None:
            flat[cells] = values

        # No operand can hold a host write, so the lane's thread stands at the waits itself. Two lanes that do not wait for
        # each other write in any order.
        self._last[name][mine.name] = mine.enqueue(self._device, scatter, blocking=True)

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        for promise in self._last[name].values():
            promise.block()
        return self._host[name].copy()

    def report(self) -> Mapping[str, object]:
        did = dict.fromkeys(("writes_held", "writes_copied", "refused"), 0)
        return {"tables": "aliased", "versions": dict(self._writes), **did}


def aligned_zeros(shape: tuple[int, ...]) -> Int32[np.ndarray, "rows cols"]:
    """A zeroed int32 array whose memory starts where the CPU client can alias it."""
    nbytes = int(np.prod(shape)) * 4
    raw = np.zeros(nbytes + ALIGNMENT, np.uint8)
    offset = -raw.ctypes.data % ALIGNMENT
    return raw[offset : offset + nbytes].view(np.int32).reshape(shape)
