"""Findings as sentences: what is wrong, which edge is missing, where it would be right, and what could not be seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

from warfence.host.quiet import no_collection
from warfence.races.check.clocks import Edge
from warfence.races.check.events import HOST, Event
from warfence.races.check.happens_before import MOST_NAMED, Analysis, Pair, analyse
from warfence.races.check.log_file import Log

FindingKind = Literal["race", "never-recorded", "stale-ticket", "wait-cycle", "over-fencing"]
Verdict = Literal["clean", "incomplete", "findings"]
LIMITS = (
    "Only accesses that are in the log: a kernel that touches more than it declares, or memory known by two names, "
    "is not seen.",
    "Only this run: waits that another input or another branch would take are not judged.",
    "Of several earlier accesses of one lane only the last that overlaps is named; a fence behind it covers the others.",
    "A write that raced stands for the accesses that were ordered before it: fix the first race, then check again.",
    "Over-fencing is judged by the conflicts of this log, and only where no instance of a wait (kind, lanes, place in the "
    "code) needed all that it waited for.",
    "An await of a record that is called later orders its accesses against the order of the calls: that is an order, so no "
    "race; whether it is the right one is not judged here.",
)


@dataclass(frozen=True)
class Finding:
    """One kind of mistake, with its first instance. lines: places in the log of the two events, counted from 1.

    missing: the edge that is missing, or too strong. earliest: the place from which on it would be right.
    count: alike ones. operations: those that over-fencing waited for in vain, of all alike ones together.
    """

    kind: FindingKind
    what: str
    missing: str
    earliest: str
    lines: tuple[int, ...]
    where: tuple[str, ...]
    resource: str = ""
    count: int = 1
    operations: int = 0


@dataclass(frozen=True)
class Findings:
    """All findings of one log, alike ones counted together. missed: what happened in the run and is not in the log."""

    findings: tuple[Finding, ...]
    events: int
    lanes: tuple[str, ...]
    limits: tuple[str, ...]
    missed: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What this log says: "clean" only where nothing was missed that may matter."""
        return "findings" if self.findings else "incomplete" if self.missed else "clean"

    def kinds(self) -> set[FindingKind]:
        return {finding.kind for finding in self.findings}

    def document(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return asdict(self) | {"verdict": self.verdict}


def check(log: Log) -> Findings:
    """Analyse a log and say what was found."""
    with no_collection():
        found = analyse(log.events)
    first: dict[Hashable, Finding] = {}
    counts: Counter[Hashable] = Counter()
    costs: Counter[Hashable] = Counter()
    for key, cost, finding in _all(found):
        counts[key] += 1
        costs[key] += cost
        if key not in first:
            first[key] = finding()
    findings = tuple(replace(one, count=counts[key], operations=costs[key]) for key, one in first.items())
    return Findings(
        findings, len(log.events), tuple(found.lanes), (*log.unseen, *LIMITS, *_unnamed(found)), tuple(log.missed)
    )


def _unnamed(found: Analysis) -> tuple[str, ...]:
    if not found.unnamed:
        return ()
    return (
        f"{found.unnamed} more racing pairs are counted and not named: of one access at most {MOST_NAMED} are. Mend those "
        f"that are named, then check again.",
    )


def _all(found: Analysis) -> Iterator[tuple[Hashable, int, Callable[[], Finding]]]:
    """(what counts as alike, operations waited for in vain, how to say it) of everything found."""
    events, names = found.events, tuple(found.lanes)
    for pair in found.races:
        a, b = events[pair.first], events[pair.second]
        yield ("race", a.resource, _kin(a), _kin(b)), 0, partial(_race, a, b, pair)
    for index in found.never_recorded:
        wait = events[index]
        yield ("never", wait.lane, wait.event), 0, partial(_never, wait, index)
    for index, record in found.stale:
        wait, held = events[index], events[record]
        yield ("stale", wait.lane, wait.event, held.lane), 0, partial(_stale, wait, held, (index, record))
    if found.standing:
        yield "cycle", 0, partial(_cycle, [events[index] for index in found.standing], tuple(found.standing))
        return  # what stands was not judged, so no wait can be called too strong
    for edge, late in (*found.over_fencing(), *_steady(found)):
        wait, source = events[edge.index], names[edge.source]
        yield ("over", wait.kind, wait.lane, source, edge.used), late, partial(_over, wait, source, edge, late)


def _steady(found: Analysis) -> Iterator[tuple[Edge, int]]:
    """Waits of a loop that are too strong in each of its turns: with all of them weaker the log is still in order."""
    for same in found.steady():
        again = analyse(found.events, {edge.index for edge, _ in same})
        if not again.races and not again.standing:
            for edge, late in same:
                edge.needed = edge.later
                yield edge, late


def _kin(event: Event) -> tuple[str, str, str]:
    return event.kind, event.lane, event.stage


def _race(a: Event, b: Event, pair: Pair) -> Finding:
    if b.lane == HOST:
        how = f"the host does not synchronise with lane {a.lane} behind {a.title} before"
    else:
        how = f"lane {b.lane} does not wait for lane {a.lane} behind {a.title} before"
    short = pair.position - pair.known
    seen = f"it is behind an operation {short} earlier only" if pair.known else "it is behind nothing of that lane"
    return Finding(
        kind="race",
        what=f"{a.kind} of {a.cells} by {a.title} and {b.kind} of {b.cells} by {b.title} may happen in either order",
        missing=f"{how} {b.title}; {seen}",
        earliest=f"right after {a.title}: record there, and wait for that before {b.title}",
        lines=(pair.first + 1, pair.second + 1),
        where=(a.where, b.where),
        resource=a.resource,
    )


def _never(wait: Event, index: int) -> Finding:
    return Finding(
        kind="never-recorded",
        what=f"lane {wait.lane} waits for event '{wait.event}', which nothing had recorded at the call",
        missing="such a wait orders nothing",
        earliest="record the event before the host calls the wait",
        lines=(index + 1,),
        where=(wait.where,),
    )


def _stale(wait: Event, held: Event, lines: tuple[int, int]) -> Finding:
    def named(event: Event) -> str:
        generation = f", generation {event.generation}" if event.generation else ""
        return f"launch {event.launch or 'none'}{generation}"

    return Finding(
        kind="stale-ticket",
        what=f"lane {wait.lane} waits on event '{wait.event}' for {named(wait)}, but the event holds the record of"
        f" {named(held)} on lane {held.lane}",
        missing=f"nothing orders lane {wait.lane} behind {named(wait)} here",
        earliest=f"call the wait while the event holds the record of {named(wait)}, or record to an event of its own",
        lines=(lines[0] + 1, lines[1] + 1),
        where=(wait.where, held.where),
    )


def _cycle(standing: list[Event], places: tuple[int, ...]) -> Finding:
    def stands(event: Event) -> str:
        number = f"record {event.generation} of " if event.kind == "await" else ""
        waited = f"event '{event.event}'" if event.event else f"all of lane {event.other}"
        return f"{event.lane} waits for {number}{waited}"

    return Finding(
        kind="wait-cycle",
        what=f"nothing can go on: {'; '.join(stands(event) for event in standing)}",
        missing="what would end each of these waits stands behind another of them, or is never called",
        earliest="enqueue one of the records before the wait that it stands behind, or let that wait bind at its call",
        lines=tuple(place + 1 for place in places),
        where=tuple(event.where for event in standing),
    )


def _over(wait: Event, source: str, edge: Edge, late: int) -> Finding:
    many = f"{late} operation{'s' if late > 1 else ''}"
    waited = f"event '{wait.event}'" if wait.event else f"all of lane {source}"
    if edge.used:
        need = f"the last one that a conflict needs is operation {edge.needed} of lane {source}, {many} before"
        earliest = f"record on lane {source} right after its operation {edge.needed}, and wait for that"
    else:
        need = f"no conflict in this log needs it; it waits for {many} of lane {source}"
        earliest = "leave the wait out, if no other input needs it"
    return Finding(
        kind="over-fencing",
        what=f"lane {wait.lane} waits for {waited} up to operation {edge.upto} of lane {source}: {many} more than needed",
        missing=need,
        earliest=earliest,
        lines=(edge.index + 1,),
        where=(wait.where,),
    )
