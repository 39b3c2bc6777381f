"""A whole run: every case on every backend, then the axes that serve requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from warfence.bench import engine_runs
from warfence.bench.cases import ROUNDS, SERVED, Case
from warfence.bench.group import Effort, Group, Open
from warfence.bench.measure import measure
from warfence.bench.results import CaseResult
from warfence.bench.rounds import RoundsResult, first_turn, measure_rounds
from warfence.bench.strategies import Strategy
from warfence.host.meter import Meter


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What is to be measured. backends: by name, how one is opened with given options."""

    backends: Mapping[str, Open]
    device: str
    cases: Sequence[Case]
    axes: Sequence[str]
    strategies: Sequence[Strategy]
    effort: Effort
    trace: Path | None = None
    requests: int = 24


@dataclass(slots=True)
class Found:
    """What has been measured so far: an interrupt keeps it."""

    cases: list[CaseResult] = field(default_factory=list)
    served: list[engine_runs.ServedResult] = field(default_factory=list)
    rounds: list[RoundsResult] = field(default_factory=list)


def run(plan: BenchOptions, meter: Meter, found: Found) -> None:
    """Measure all of it, one backend after the other, into `found`."""
    for name, open_backend in plan.backends.items():
        for _, alike in groupby(plan.cases, key=lambda case: case.shape):
            _measure_shape(name, open_backend, list(alike), plan, meter, found)
        for axis in plan.axes:
            for value, job in engine_runs.jobs(axis, plan.device, plan.trace, plan.requests) if axis in SERVED else ():
                result = engine_runs.measure_served(name, open_backend, axis, value, job, plan.effort.rounds, meter)
                found.served.append(result)
        if ROUNDS in plan.axes and plan.trace is not None:
            job = first_turn(plan.device, plan.trace, plan.requests)
            found.rounds += measure_rounds(name, open_backend, job, plan.effort.rounds, meter)


def _measure_shape(
    name: str, open_backend: Open, cases: list[Case], plan: BenchOptions, meter: Meter, found: Found
) -> None:
    """Cases of one forward and batch. Those that differ in the rows of the table alone take turns."""
    families: dict[tuple[int, bool], list[Case]] = {}
    for case in cases:
        families.setdefault((case.writes, case.sync), []).append(case)
    with ExitStack() as stack:
        groups: dict[int, Group] = {}
        for case in cases:
            if case.table_rows not in groups:
                group = Group(name, open_backend, case, plan.strategies, plan.effort, meter)
                stack.callback(group.close)
                groups[case.table_rows] = group
        for family in families.values():
            found.cases += measure([(groups[case.table_rows], case) for case in family])
