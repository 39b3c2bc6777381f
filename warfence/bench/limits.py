"""What bounds a step whatever the fence: the forward alone, and the schedule alone behind the read boundary."""

from __future__ import annotations

from statistics import median
from time import perf_counter

from warfence.bench.fixture import BenchFixture, Work
from warfence.bench.loop import LEAD_IN
from warfence.core.backend import Outputs
from warfence.core.forwards import PlannedForward
from warfence.core.program import REQ_TO_TOKEN

TRIES = 5


def forward_alone_ms(fixture: BenchFixture, planned: PlannedForward, steps: int) -> float:
    """A launch after the other, one ahead of the result, without any table write or barrier."""
    fixture.settle()
    previous: Outputs | None = None
    start = 0.0
    for i in range(LEAD_IN + steps + 1):
        outputs = fixture.execute(planned, fixture.batch)
        fixture.runner.mailbox.clear()
        if previous is not None:
            previous.result()
        previous = outputs
        if i == LEAD_IN:
            start = perf_counter()
    taken = perf_counter() - start
    if previous is not None:
        previous.result()
    return 1e3 * taken / steps


def schedule_alone_ms(fixture: BenchFixture, work: Work, steps: int, sync: bool) -> float:
    """The table writes of a step (and the host's wait for them, with `sync`), without any forward."""
    fixture.settle()
    start = perf_counter()
    for i in range(steps):
        for cells, values in work[i % 2]:
            fixture.tables.write(fixture.schedule, REQ_TO_TOKEN, cells, values)
        if sync:
            fixture.schedule.synchronize()
    fixture.schedule.synchronize()
    return 1e3 * (perf_counter() - start) / steps


def boundary_ms(fixture: BenchFixture, planned: PlannedForward, forward_ms: float) -> float:
    """From the begin of a forward to its read boundary: the forward's time less what is left of it behind the ticket.

    Of two launches the second is looked at: while the first runs, the host gets ahead. The whole forward where nothing is
    published.
    """
    left = []
    for _ in range(TRIES):
        fixture.settle()
        first = fixture.execute(planned, fixture.batch)
        fixture.runner.mailbox.clear()
        second = fixture.execute(planned, fixture.batch)
        ticket = fixture.runner.mailbox.take()
        if ticket is None:
            second.result()
            return forward_ms
        ticket.source.synchronize()
        reached = perf_counter()
        second.result()
        left.append(1e3 * (perf_counter() - reached))
        first.result()
    return min(max(forward_ms - median(left), 0.0), forward_ms)
