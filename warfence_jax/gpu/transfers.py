"""Batches and results on their way, on XLA's own stream: to ask JAX for a transfer costs more host time than the step it is for.

Seen on an H200: `device_put` of one batch 212 us of the host, `copy_to_host_async` and `numpy.array` of the results 90 us.
"""

from __future__ import annotations

import ctypes

import numpy as np
from jax import Array, Device
from jaxtyping import Int32

from warfence.core.backend import ArraySpec
from warfence.host.cuda import checked, pinned, use_device
from warfence_jax.devices import zeros
from warfence_jax.gpu.lanes import StreamEvent, XlaLane

UPLOADS = 4  # batches in flight before the host waits; it is at most two steps ahead


class Fetched:
    """Words of one launch on their way to the host, with the events between which the launch ran."""

    def __init__(self, words: int) -> None:
        self.address = pinned(4 * max(words, 1))
        self._view = np.ctypeslib.as_array((ctypes.c_int32 * words).from_address(self.address))
        self.begin, self.end = StreamEvent(timed=True), StreamEvent(timed=True)

    def take(self) -> tuple[Int32[np.ndarray, " words"], float]:
        """The words and the seconds that the launch took on the stream. Blocks until they are here."""
        self.end.synchronize()
        seconds = 1e-3 * float(checked(use_device().cuEventElapsedTime(self.begin.handle, self.end.handle)))
        return self._view.copy(), seconds


class Transfers:
    """Of one forward: the batch in device memory that its executables read, and its results."""

    def __init__(self, words: int, lane: XlaLane, device: Device) -> None:
        self._lane = lane
        self._handle = use_device().CUstream(lane.stream)
        self._batch: Array = zeros(ArraySpec((words,)), device).block_until_ready()
        self._address, self._bytes = int(self._batch.unsafe_buffer_pointer()), 4 * words
        self._staged = [pinned(4 * words) for _ in range(UPLOADS)]
        self._views = [np.ctypeslib.as_array((ctypes.c_int32 * words).from_address(a)) for a in self._staged]
        self._events = [StreamEvent() for _ in range(UPLOADS)]
        self._next = 0
        self._free: list[Fetched] = []
        self._begun: Fetched | None = None
        self._outputs = 0

    def upload(self, words: Int32[np.ndarray, " words"]) -> Array:
        """Enqueue the copy of a batch; what is dispatched next reads it. The launch begins here."""
        i = self._next
        self._next = (i + 1) % UPLOADS
        event, cu = self._events[i], use_device()
        if event.recorded_for() is not None and not event.done():
            event.synchronize()
        self._begun = self._free.pop() if self._free else None
        if self._begun is not None:
            checked(cu.cuEventRecord(self._begun.begin.handle, self._handle))
        self._views[i][:] = words
        checked(cu.cuMemcpyHtoDAsync(self._address, self._staged[i], self._bytes, self._handle))
        checked(cu.cuEventRecord(event.handle, self._handle))
        event.armed(0)
        return self._batch

    def fetch(self, outputs: Array) -> Fetched:
        """Enqueue the copy of a launch's results. Their memory may go to whoever comes behind on the stream."""
        cu, words = use_device(), outputs.size
        fetched, self._begun = self._begun, None
        if fetched is None:
            fetched = Fetched(words)
            checked(cu.cuEventRecord(fetched.begin.handle, self._handle))
        checked(cu.cuMemcpyDtoHAsync(fetched.address, int(outputs.unsafe_buffer_pointer()), 4 * words, self._handle))
        checked(cu.cuEventRecord(fetched.end.handle, self._handle))
        return fetched

    def give_back(self, fetched: Fetched) -> None:
        """Its words were taken: another launch may have it."""
        self._free.append(fetched)
