"""Measures one case on one backend. In each round every strategy runs once, and the limits too: A B C, A B C, ..."""

from __future__ import annotations

from dataclasses import dataclass, field

from warfence.bench import limits
from warfence.bench.cases import Case
from warfence.bench.costs import host_costs_us
from warfence.bench.group import LEAST_STEPS, Entry, Group
from warfence.bench.latency import barrier_latency_us
from warfence.bench.loop import LEAD_IN, Block, run_block
from warfence.bench.memory import Memory, over_steps
from warfence.bench.results import CaseResult, StrategyResult, fence_share
from warfence.bench.spread import Spread
from warfence.bench.strategies import REFERENCE

MOST_MEMORY_S = 4.0  # of the longer run in which memory is watched


@dataclass(slots=True)
class Track:
    """What one strategy gave so far. steps: of its blocks, as many as fit the time of one."""

    entry: Entry
    steps: int
    blocks: list[Block] = field(default_factory=list)


class Measurement:
    """One case, round by round, so that others can take turns with it. `order`: the strategies as their blocks ran."""

    def __init__(self, group: Group, case: Case) -> None:
        """Also runs a short block of each strategy, which warms up and tells how long its steps take."""
        self.group, self.case = group, case
        self.order: list[str] = []
        self._first, self._reference = group.first, group.reference
        self._work = self._first.work(case.writes)
        self._expected = self._first.expected(self._reference, self._work)
        self._forward, self._schedule, self._boundary = list[float](), list[float](), list[float]()
        fitting = group.effort.fitting
        self._steps = fitting(limits.forward_alone_ms(self._first, self._reference, LEAST_STEPS) / 1e3)
        self._tracks = [Track(entry, fitting(self._run(entry, LEAST_STEPS).step_ms / 1e3)) for entry in group.entries]

    def round(self) -> None:
        """Measure the limits, then one block of each strategy."""
        first, reference, steps = self._first, self._reference, self._steps
        forward = limits.forward_alone_ms(first, reference, steps)
        self._forward.append(forward)
        self._schedule.append(limits.schedule_alone_ms(first, self._work, steps, self.case.sync))
        self._boundary.append(limits.boundary_ms(first, reference, forward))
        for track in self._tracks:
            track.blocks.append(self._run(track.entry, track.steps))

    def result(self) -> CaseResult:
        """All figures of the rounds so far, and what is measured once: costs, latency, memory."""
        limit = zip(self._forward, self._schedule, self._boundary, strict=True)
        ideal = Spread.of(max(forward, schedule + boundary) for forward, schedule, boundary in limit)
        latency, why_not = self._latency()
        group, strategies = self.group, self._strategies(ideal)
        costs = host_costs_us(self._first, self._reference, group.effort.bursts)
        return CaseResult(
            backend=group.name, device=self._first.backend.device, case=self.case, parameters=group.parameters,
            forward_ms=Spread.of(self._forward), schedule_ms=Spread.of(self._schedule),
            boundary_ms=Spread.of(self._boundary), ideal_ms=ideal,
            strategies=strategies, unavailable=dict(group.unavailable), host_costs_us=costs,
            fence_share_of_step=fence_share(strategies, costs), barrier_latency_us=latency, no_barrier_latency=why_not,
            memory=self._memory(),
        )  # fmt: skip

    def _strategies(self, ideal: Spread) -> dict[str, StrategyResult]:
        fine = next(
            (Spread.of(b.step_ms for b in t.blocks) for t in self._tracks if t.entry.strategy.name == REFERENCE), None
        )
        return {
            t.entry.strategy.name: StrategyResult.of(
                t.blocks, ideal, fine, t.steps, t.entry.planned.decision.policy.value, t.entry.strategy
            )
            for t in self._tracks
        }

    def _run(self, entry: Entry, steps: int) -> Block:
        self.order.append(entry.strategy.name)
        block = run_block(
            entry.fixture, entry.strategy, entry.planned, self._work, steps, self.case.sync, self._expected
        )
        self.group.meter.step()
        return block

    def _latency(self) -> tuple[Spread | None, str | None]:
        forward = self._reference.forward
        stage = forward.marker.stage if forward.marker is not None else None
        first = self._first
        first.settle()
        return barrier_latency_us(
            first.backend, forward.program, stage, first.batch, first.launches, self.group.effort.bursts
        )

    def _memory(self) -> Memory | None:
        """Over a longer run of the fine fence, or of the first strategy where that one is not measured."""
        if not self._tracks:
            return None
        track = next((t for t in self._tracks if t.entry.strategy.name == REFERENCE), self._tracks[0])
        entry, step_s = track.entry, track.blocks[-1].step_ms / 1e3
        third_of = max(min(self.group.effort.memory_steps, int(MOST_MEMORY_S / step_s)) // 3, 1)
        steps = min(track.steps, third_of)
        blocks = max(1, third_of // steps)

        def third() -> int:
            for _ in range(blocks):
                run_block(
                    entry.fixture, entry.strategy, entry.planned, self._work, steps, self.case.sync, self._expected
                )
            return blocks * (steps + LEAD_IN + 1)

        return over_steps(third, entry.fixture.backend.report)


def measure(cases: list[tuple[Group, Case]]) -> list[CaseResult]:
    """Cases that take turns, round by round: what is compared across them is of the same time. All of one backend."""
    group, first = cases[0]
    parts = sum(len(one.entries) for one, _ in cases)
    others = f" and {len(cases) - 1} more, in turn" if len(cases) > 1 else ""
    group.meter.phase(f"{group.name}: {first.name}{others}", (group.effort.rounds + 1) * parts)
    measurements = [Measurement(one, case) for one, case in cases]
    for _ in range(group.effort.rounds):
        for measurement in measurements:
            measurement.round()
    return [measurement.result() for measurement in measurements]
