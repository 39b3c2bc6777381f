"""Two documents side by side: the new median over the old one, for each strategy of each case that both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from warfence.bench.cases import Case

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


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Step times, and what does not belong to a strategy: host costs and latency. In the order of the new document."""
    before = {_key(case): case for case in old["cases"]}
    found = []
    for case in new["cases"]:
        was = before.get(_key(case))
        if was is not None:
            found += list(_of_case(_key(case), was, case))
    return found


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """In what the environments differ, a clause each."""
    was, now = old["environment"], new["environment"]
    return [f"{name}: {was.get(name)} then, {now.get(name)} now" for name in COMPARED if was.get(name) != now.get(name)]


def missing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Cases of the old document that the new one does not have."""
    now = {_key(case) for case in new["cases"]}
    return [key for case in old["cases"] if (key := _key(case)) not in now]


def _of_case(where: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
    for name, figures in now["strategies"].items():
        if name in was["strategies"]:
            yield _change(where, name, "step_ms", was["strategies"][name]["step_ms"], figures["step_ms"])
    for kind, cost in now["host_costs_us"].items():
        if kind in was["host_costs_us"]:
            yield _change(where, kind, "publish + barrier us", was["host_costs_us"][kind], cost)
    if was["barrier_latency_us"] and now["barrier_latency_us"]:
        yield _change(where, "barrier", "latency us", was["barrier_latency_us"], now["barrier_latency_us"])


def _change(where: str, of: str, figure: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Change:
    apart = old["high"] < new["low"] or new["high"] < old["low"]
    return Change(where, of, figure, old["median"], new["median"], apart)


def _key(case: Mapping[str, Any]) -> str:
    return f"{case['backend']} on {case['device']}, {Case.from_json(case['case']).name}"
