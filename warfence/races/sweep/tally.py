"""What a sweep found, as plain data: counts by family and verdict, and the programs that two judges differ about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from platform import python_version
from typing import Any

from warfence import __version__, backends
from warfence.races.scenarios.program import VERDICTS, Scenario
from warfence.races.scenarios.text import text
from warfence.races.sweep.families import FAMILIES
from warfence.races.sweep.judges import Said
from warfence.races.sweep.options import SweepOptions
from warfence.races.sweep.shrink import shrink
from warfence.races.sweep.work import Judged, judges_of

MOST_SHRUNK = 3  # failures that are shrunk; of the others the file has family and index
Failure = tuple[str, int, Said]


def failures(judged: Iterable[Judged]) -> list[Failure]:
    """(family, index, what each judge said) of every case about which two differ, in order."""
    return [
        (one.family, index, said)
        for one in sorted(judged, key=lambda one: one.chunk)
        for index, said in one.failures.items()
    ]


def shrunk(plan: SweepOptions, found: Sequence[Failure]) -> list[Scenario]:
    """A few of them, shrunk: those about which the judges say different things first."""
    kinds: Counter[str] = Counter()
    ranked = []
    for failure in found:
        kind = str(failure[2])
        ranked.append((kinds[kind], failure))
        kinds[kind] += 1
    ranked.sort(key=lambda one: one[0])
    return [
        shrink(FAMILIES[family].case(index, plan.steps, plan.seed), said, plan.steps, judges_of(plan))
        for _, (family, index, said) in ranked[:MOST_SHRUNK]
    ]


def document(
    plan: SweepOptions, judged: Sequence[Judged], programs: Sequence[Scenario], seconds: float
) -> dict[str, Any]:
    """The result. seconds: of this run; worker_seconds: of all chunks, those that were resumed included."""
    found = failures(judged)
    families = {}
    for name in plan.families:
        of = [one for one in judged if one.family == name]
        verdicts = _sum(one.verdicts for one in of)
        families[name] = {
            "about": FAMILIES[name].about,
            "cases": sum(one.cases for one in of),
            "verdicts": {verdict: verdicts[verdict] for verdict in VERDICTS if verdicts[verdict]},
            "judged": dict(_sum(one.judged for one in of)),
            "failures": sum(len(one.failures) for one in of),
            "worker_seconds": round(sum(one.seconds for one in of), 3),
        }
    versions = {"warfence": __version__, "python": python_version()}
    for name in plan.backends:
        versions |= backends.versions(backends.package(name))
    return {
        "options": asdict(plan),
        "versions": versions,
        "cases": sum(one.cases for one in judged),
        "failures": len(found),
        "seconds": round(seconds, 3),
        "families": families,
        "disagreements": [{"family": family, "index": index, "said": said} for family, index, said in found],
        "shrunk": [{"id": one.id, "title": one.title, "program": text(one)} for one in programs],
    }


def _sum(counts: Iterable[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total
