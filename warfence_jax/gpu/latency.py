"""How long it takes on a GPU from the read boundary to the first thing behind the barrier: two events with clocks."""

from __future__ import annotations

from collections.abc import Iterator

from warfence.core.batch import Batch
from warfence.core.errors import FenceError
from warfence.host.cuda import checked, use_device
from warfence_jax.forward import JaxForward
from warfence_jax.gpu.lanes import StreamEvent, StreamLane

AHEAD = 2  # launches of a round; the last is timed, and while the others run the host gets ahead


def barrier_latency_us(
    forward: JaxForward, boundary: StreamEvent, schedule: StreamLane, batch: Batch, launches: Iterator[int], rounds: int
) -> list[float]:
    """From the boundary's event, which XLA's graph records behind the last read and before the word, to the schedule stream going
    on behind its wait, in microseconds; one a round."""
    if forward.marker is None:
        raise FenceError(f"'{forward.program.name}' was compiled without its marker")
    landed, found = StreamEvent(timed=True), []
    for _ in range(rounds):
        outputs = []
        for _ in range(AHEAD):
            launch = next(launches)
            forward.load_batch(batch, launch)
            forward.replay(launch)
            ticket = forward.marker.ticket(launch)
            outputs.append(forward.tail(launch))
        schedule.wait(ticket)
        checked(use_device().cuEventRecord(landed.handle, use_device().CUstream(schedule.stream)))
        for one in outputs:
            one.result()
        landed.synchronize()
        found.append(1e3 * float(checked(use_device().cuEventElapsedTime(boundary.handle, landed.handle))))
    return found
