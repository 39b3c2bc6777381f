"""Plays every pair on one backend and compares what the checker says with the right verdict."""

from __future__ import annotations

from dataclasses import dataclass

from warfence.core.backend import Backend
from warfence.races.check.pairs.programs import NOT_EXPRESSED, SCENARIOS
from warfence.races.check.pairs.scenario import Scenario
from warfence.races.check.pairs.stand import Stand
from warfence.races.check.report import Report


@dataclass(frozen=True)
class Result:
    """One scenario. verdict: empty where it was not played, for the reason given."""

    name: str
    expected: str
    verdict: str
    found: tuple[str, ...] = ()
    reason: str = ""

    @property
    def right(self) -> bool:
        return not self.verdict or self.verdict == self.expected


def verdict_of(report: Report, expected: str) -> str:
    """bad: accesses race. ok: none do, though a fence may be stronger than needed, unless that is what is expected."""
    kinds = report.kinds()
    if "race" in kinds:
        return "bad"
    wrong = sorted(kinds - ({"over-fencing"} if expected != "over-fencing" else set()))
    return ", ".join(wrong) or "ok"


def play(stand: Stand, scenario: Scenario) -> Result:
    """Play one scenario, where the backend can express it."""
    if scenario.not_on is not None and scenario.not_on[0] == stand.backend.name:
        return Result(scenario.name, scenario.expected, "", reason=scenario.not_on[1])
    report = stand.report(scenario.play)
    verdict = verdict_of(report, scenario.expected)
    return Result(scenario.name, scenario.expected, verdict, tuple(sorted(report.kinds())))


def play_all(backend: Backend) -> list[Result]:
    """Every scenario of the list, those that cannot be expressed last. Closes the backend."""
    try:
        stand = Stand(backend)
        results = [play(stand, scenario) for scenario in SCENARIOS]
    finally:
        backend.close()
    return results + [Result(name, "", "", reason=reason) for name, reason in NOT_EXPRESSED.items()]


def recall_and_precision(results: list[Result]) -> tuple[float, float]:
    """Of the bad programs those found, and of those found bad the bad ones."""
    bad = {one.name for one in results if one.verdict and one.expected == "bad"}
    found = {one.name for one in results if one.verdict == "bad"}
    return len(found & bad) / max(len(bad), 1), len(found & bad) / max(len(found), 1)
