"""Steps as the scheduler takes them, with a clock: writes, launch, barrier, and the result of the launch before."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from warfence.bench.fixture import BenchFixture, Result, Work, difference
from warfence.bench.strategies import Strategy
from warfence.core.backend import Outputs
from warfence.core.errors import WarfenceError
from warfence.core.fence import WarBarrier
from warfence.core.forwards import PlannedForward
from warfence.core.program import REQ_TO_TOKEN
from warfence.host.quiet import no_collection

LEAD_IN = 3  # steps that fill the lanes and are not counted


@dataclass(frozen=True, slots=True)
class Block:
    """What the counted steps of one block took, a step.

    step_ms: wall time. lead_ms: the result of launch N was there so long after launch N+1 was issued (below 0: before).
    bubble: share of the time in which the forward lane ran no launch; None where the backend has no clock there.
    writes_us, execute_us, barrier_us: host time inside of these calls; of self, the barrier's is its wait.
    """

    step_ms: float
    lead_ms: float
    bubble: float | None
    writes_us: float
    execute_us: float
    barrier_us: float


def run_block(
    fixture: BenchFixture, strategy: Strategy, planned: PlannedForward, work: Work, steps: int, sync: bool,
    expected: tuple[Result, Result],
) -> Block:  # fmt: skip
    """`steps` counted steps behind one strategy. WarfenceError when a launch gave another result than the serial one."""
    barrier, mailbox = WarBarrier(strategy.fence), fixture.runner.mailbox
    fixture.settle()
    stamps: list[tuple[float, float, float, float, float]] = []
    results: list[Result] = []
    device: list[float | None] = []
    previous: Outputs | None = None
    untimed: Outputs | None = None

    def take(outputs: Outputs) -> None:
        nonlocal untimed
        results.append(outputs.result())
        if untimed is not None:  # one launch later, as the scheduler does: nobody waits for a clock
            device.append(untimed.device_s)
        untimed = outputs

    gc.collect()
    with no_collection():
        for i in range(LEAD_IN + steps + 1):
            begun = perf_counter()
            for cells, values in work[i % 2]:
                if strategy.at_writer:
                    fixture.schedule.wait_lane(fixture.lane)
                fixture.tables.write(fixture.schedule, REQ_TO_TOKEN, cells, values)
            if sync:
                fixture.schedule.synchronize()
            written = perf_counter()
            launch = next(fixture.launches)
            outputs = fixture.runner.execute(planned, fixture.batch, launch)
            issued = perf_counter()
            if strategy.serial:
                mailbox.clear()
            else:
                barrier.apply(launch, mailbox, fixture.schedule, fixture.lane)
            fenced = perf_counter()
            if strategy.serial:
                take(outputs)
            elif previous is not None:
                take(previous)
            previous = outputs
            stamps.append((begun, written, issued, fenced, perf_counter()))
        if not strategy.serial and previous is not None:
            take(previous)
    if untimed is not None:
        device.append(untimed.device_s)
    _check(strategy, results, expected)
    return _block(stamps, device, steps, 0 if strategy.serial else 1)


def _block(
    stamps: list[tuple[float, float, float, float, float]], device: list[float | None], steps: int, behind: int
) -> Block:
    """Figures of the last `steps` steps. `behind`: how many launches ahead of the result the host is."""
    counted = stamps[LEAD_IN + 1 :]
    total = counted[-1][4] - stamps[LEAD_IN][4]
    # The result that step i took is that of launch i - behind; behind it, launch i - behind + 1 was issued.
    ends = {i - behind: stamp[4] for i, stamp in enumerate(stamps)}
    leads = [ends[i] - stamps[i + 1][2] for i in range(LEAD_IN, len(stamps) - 1)]
    seconds = [s for s in device[LEAD_IN + 1 - behind :][:steps] if s is not None]
    return Block(
        step_ms=1e3 * total / steps,
        lead_ms=1e3 * median(leads),
        bubble=1 - sum(seconds) / total if len(seconds) == steps else None,
        writes_us=1e6 * median(s[1] - s[0] for s in counted),
        execute_us=1e6 * median(s[2] - s[1] for s in counted),
        barrier_us=1e6 * median(s[3] - s[2] for s in counted),
    )


def _check(strategy: Strategy, results: list[Result], expected: tuple[Result, Result]) -> None:
    for i, result in enumerate(results):
        wrong = difference(result, expected[i % 2])
        if wrong is not None:
            raise WarfenceError(
                f"bench: step {i} behind the strategy {strategy.name} gave another result than the serial loop ({wrong}): "
                f"its times mean nothing"
            )
