"""Tables on the device: arrays that JAX reads, and whose memory streams of our own write. Only the fence protects them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jax import Device
from jaxtyping import Int32

from warfence.core.backend import ArraySpec
from warfence.core.errors import FenceError
from warfence.host.cuda import checked, pinned, use_device
from warfence_jax.devices import zeros
from warfence_jax.gpu.lanes import StreamEvent, StreamLane
from warfence_jax.gpu.scatter import Scatter
from warfence_jax.tables import Cells, Version, check_write
from warfence_jax.tokens import Promise

SLOTS, LEAST_WORDS = 64, 4096  # of a lane's staging: writes in flight, and words of each (2048 cells)
GROUP = 16  # writes between two events


class Staging:
    """Pinned memory for the writes of one lane, used again once the writes that read it are over."""

    def __init__(self, words: int, lane: StreamLane) -> None:
        self.words, self._lane = words, lane
        base = pinned(4 * words * SLOTS)
        addresses = [base + 4 * words * i for i in range(SLOTS)]
        self._views = [np.ctypeslib.as_array((ctypes.c_int32 * words).from_address(a)) for a in addresses]
        self._scatters = [Scatter(address) for address in addresses]
        self._events = [StreamEvent() for _ in range(SLOTS // GROUP)]  # behind the last write of each group
        self._handle = use_device().CUstream(lane.stream)
        self._next = 0

    def write(self, table: int, cells: Cells, values: Cells) -> None:
        """Stage and scatter. Blocks only where all slots are in flight."""
        i, count = self._next, len(cells)
        self._next = (i + 1) % SLOTS
        event = self._events[i // GROUP]
        if i % GROUP == 0 and event.recorded_for() is not None and not event.done():
            event.synchronize()
        view = self._views[i]
        view[:count], view[count : 2 * count] = cells, values
        self._scatters[i].launch(table, count, self._handle)
        if i % GROUP == GROUP - 1:
            checked(use_device().cuEventRecord(event.handle, self._handle))
            event.armed(0)


class DeviceTables:
    """Shared tables of a GPU (`warfence.core.backend.SharedTables`)."""

    def __init__(self, specs: Mapping[str, ArraySpec], device: Device) -> None:
        self.specs = specs
        self.refused = 0  # these never die
        self._versions = {n: Version(n, 0, handle=zeros(s, device).block_until_ready()) for n, s in specs.items()}
        self._addresses = {n: int(v.handle.unsafe_buffer_pointer()) for n, v in self._versions.items()}  # type: ignore[union-attr]
        self._writes: dict[str, int] = dict.fromkeys(specs, 0)
        self._writers: dict[str, StreamLane] = {}
        self._staging: dict[str, Staging] = {}

    def capture(self, lane: Any, names: Iterable[str]) -> dict[str, Version]:
        """FenceError for an array that somebody deleted: its memory may be another's now."""
        found = {n: self._versions[n] for n in names}
        if dead := [n for n, version in found.items() if version.dead()]:
            raise FenceError(
                f"table '{dead[0]}' was deleted while it is in use (jax.Array.delete): its memory may hold anything now; "
                f"keep the arrays of a backend alive until it is closed"
            )
        return found

    def taken(self, version: Version, reader: Promise) -> None:
        """Nothing to note: no reader holds a write here."""

    def write(self, lane: Any, name: str, cells: Cells, values: Cells) -> None:
        check_write(self.specs, name, cells, values)
        lane.check()
        if len(cells):
            self._writes[name] += 1
            self._writers[lane.name] = lane
            self._staging_for(2 * len(cells), lane).write(self._addresses[name], cells, values)

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        for lane in self._writers.values():
            lane.synchronize()
        host = np.empty(
            self.specs[name].shape, np.int32
        )  # of the memory: JAX would give what it remembers of the array
        checked(use_device().cuMemcpyDtoH(host.ctypes.data, self._addresses[name], host.nbytes))
        return host

    def report(self) -> Mapping[str, object]:
        did = dict.fromkeys(("writes_held", "writes_copied", "refused"), 0)
        return {"tables": "device", "versions": dict(self._writes), **did}

    def prepare(self, lane: StreamLane) -> None:
        """Make a lane's staging before the first step: to allocate pinned memory may wait for a device that stands at a gate."""
        self._staging_for(1, lane)

    def _staging_for(self, words: int, lane: StreamLane) -> Staging:
        staging = self._staging.get(lane.name)
        if staging is None or staging.words < words:
            if staging is not None:
                lane.synchronize()
            staging = self._staging[lane.name] = Staging(max(LEAST_WORDS, 1 << (words - 1).bit_length()), lane)
        return staging
