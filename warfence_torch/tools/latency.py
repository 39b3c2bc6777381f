"""How long it takes on CUDA from the read boundary to the first thing behind the barrier: two events with clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from warfence.core.batch import Batch
from warfence.core.errors import FenceError, InputError
from warfence_torch.forward_cuda import CudaForward
from warfence_torch.lanes_cuda import CudaEventSource, CudaLane

AHEAD = 2  # launches of a round; the last is timed, and while the others run the host gets ahead


def timed_marker() -> CudaEventSource:
    """A marker for a captured forward that also notes the time at which it was reached."""
    return CudaEventSource(torch.cuda.Event(enable_timing=True, external=True))


def barrier_latency_us(
    make_forward: Callable[[CudaEventSource], CudaForward], schedule: CudaLane, batch: Batch, launches: Iterator[int],
    rounds: int,
) -> list[float]:  # fmt: skip
    """From the marker being reached to the schedule stream going on behind its wait, in microseconds; one a round."""
    marker, landed = timed_marker(), torch.cuda.Event(enable_timing=True)
    forward = make_forward(marker)
    if forward.marker is None:
        raise FenceError(f"'{forward.program.name}' was captured without its marker")
    found = []
    for _ in range(rounds):
        outputs = []
        for _ in range(AHEAD):
            launch = next(launches)
            forward.load_batch(batch, launch)
            forward.replay(launch)
            ticket = forward.marker.ticket(launch)
            outputs.append(forward.tail(launch))
        schedule.wait(ticket)
        landed.record(schedule.stream)
        for one in outputs:
            one.result()
        landed.synchronize()
        try:
            found.append(1e3 * marker.event.elapsed_time(landed))
        except (RuntimeError, ValueError) as error:
            raise InputError(
                f"CUDA tells no time between a marker in a graph and an event behind it: {error}"
            ) from error
    return found
