"""What the fence costs the host at each step: handing a ticket over, and the barrier. A loop while a launch is in flight."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from warfence.bench.fixture import BenchFixture
from warfence.bench.spread import Spread
from warfence.core.fence import WarBarrier
from warfence.core.forwards import PlannedForward
from warfence.core.modes import FenceMode

CALLS = 8  # behind one launch: few, so that the launch is still running


def host_costs_us(fixture: BenchFixture, planned: PlannedForward, bursts: int) -> dict[str, Spread]:
    """Microseconds of publish and barrier, by the kind of ticket.

    in_graph: the marker's (left out where the forward has none). recorded: a fresh one, as before and after the replay.
    coarse: nothing is published, and the barrier waits for the lane. off: the barrier of `--fence off`, which is the floor.
    """
    schedule, forward, mailbox = fixture.schedule, fixture.lane, fixture.runner.mailbox
    fine, coarse, off = (WarBarrier(mode) for mode in (FenceMode.FINE, FenceMode.COARSE, FenceMode.OFF))
    marker = planned.forward.marker

    def in_graph(launch: int) -> None:
        if marker is not None:
            mailbox.publish(marker.ticket(launch))
        fine.apply(launch, mailbox, schedule, forward)

    def recorded(launch: int) -> None:
        mailbox.publish(forward.record(launch))
        fine.apply(launch, mailbox, schedule, forward)

    kinds: dict[str, Callable[[int], None]] = {
        "in_graph": in_graph,
        "recorded": recorded,
        "coarse": lambda launch: coarse.apply(launch, mailbox, schedule, forward),
        "off": lambda launch: off.apply(launch, mailbox, schedule, forward),
    }
    if marker is None:
        del kinds["in_graph"]
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(bursts):
        for name, call in kinds.items():
            fixture.settle()
            launch = next(fixture.launches)
            outputs = fixture.runner.execute(planned, fixture.batch, launch)
            mailbox.clear()
            start = perf_counter()
            for _ in range(CALLS):
                call(launch)
            taken[name].append(1e6 * (perf_counter() - start) / CALLS)
            outputs.result()
    return {name: Spread.of(values) for name, values in taken.items()}
