"""How long it takes on a GPU from a word's increment to the first thing behind a wait for it, by the device's clock.

Measured on two streams of our own: an event inside XLA's graph would be recorded by a callback, whose host time would be measured
with it. So this is what a ticket by value costs, from the end of the last read: the kernel that counts, and the wait.
"""

from __future__ import annotations

import ctypes

from warfence.host.cuda import checked, new_stream, pinned, use_device, wait_value
from warfence_jax.gpu.lanes import StreamEvent
from warfence_jax.gpu.scatter import Scatter


def value_latency_us(rounds: int) -> list[float]:
    """Microseconds from before the counting kernel to behind the wait; one a round."""
    cu = use_device()
    counts, waits = (cu.CUstream(new_stream()) for _ in range(2))
    word = int(checked(cu.cuMemAlloc(4)))
    checked(cu.cuMemsetD32(word, 0, 1))
    go, staged = pinned(4), pinned(8)
    values = (ctypes.c_int32 * 2).from_address(staged)
    begin, landed, scatter = StreamEvent(timed=True), StreamEvent(timed=True), Scatter(staged)
    found = []
    for value in range(1, rounds + 1):
        values[0], values[1] = 0, value
        wait_value(counts, go, value)  # until all is enqueued
        checked(cu.cuEventRecord(begin.handle, counts))
        scatter.launch(word, 1, counts)
        wait_value(waits, word, value)
        checked(cu.cuEventRecord(landed.handle, waits))
        ctypes.c_uint32.from_address(go).value = value
        landed.synchronize()
        found.append(1e3 * float(checked(cu.cuEventElapsedTime(begin.handle, landed.handle))))
    checked(cu.cuMemFree(word))
    return found
