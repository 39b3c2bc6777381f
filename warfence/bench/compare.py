"""Two documents side by side: the new median over the old one, for each strategy of each case that both have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warfence.bench.document import Document
from warfence.bench.results import CaseResult
from warfence.bench.spread import Spread

COMPARED = ("machine", "cpus", "devices", "versions", "variables")


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one case, old and new: of a strategy, or of a kind of ticket. apart: their quartiles do not overlap."""

    case: str
    of: str
    figure: str
    old: float
    new: float
    apart: bool

    @property
    def ratio(self) -> float | None:
        return self.new / self.old if self.old else None


def changes(old: Document, new: Document) -> list[Change]:
    """Step times, and what does not belong to a strategy: host costs and latency. In the order of the new document."""
    before = {case.key: case for case in old.cases}
    found = []
    for case in new.cases:
        was = before.get(case.key)
        if was is not None:
            found += list(_of_case(case.key, was, case))
    return found


def differences(old: Document, new: Document) -> list[str]:
    """In what the environments differ, a clause each."""
    pairs = {name: [getattr(one.environment, name) for one in (old, new)] for name in COMPARED}
    return [f"{name}: {was} then, {now} now" for name, (was, now) in pairs.items() if was != now]


def missing(old: Document, new: Document) -> list[str]:
    """Cases of the old document that the new one does not have."""
    now = {case.key for case in new.cases}
    return [case.key for case in old.cases if case.key not in now]


def _of_case(where: str, was: CaseResult, now: CaseResult) -> Iterator[Change]:
    for name, found in now.strategies.items():
        if name in was.strategies:
            yield _change(where, name, "step_ms", was.strategies[name].step_ms, found.step_ms)
    for kind, cost in now.host_costs_us.items():
        if kind in was.host_costs_us:
            yield _change(where, kind, "publish + barrier us", was.host_costs_us[kind], cost)
    if was.barrier_latency_us and now.barrier_latency_us:
        yield _change(where, "barrier", "latency us", was.barrier_latency_us, now.barrier_latency_us)


def _change(where: str, of: str, figure: str, old: Spread, new: Spread) -> Change:
    apart = old.high < new.low or new.high < old.low
    return Change(where, of, figure, old.median, new.median, apart)
