"""One corpus for every judge of executions: plays the catalogue through a player, and compares what the checker says.

A player makes the calls of a scenario on something that records them (a backend's interface, a framework under watch) with
no gate closed. What raced nevertheless ran in some order; the checker judges by the calls, so one execution is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from warfence.core.errors import WarfenceError
from warfence.races.check.findings import Findings
from warfence.races.replay.plan import traces_of
from warfence.races.scenarios.explore import Outcome, explore
from warfence.races.scenarios.operations import Memories
from warfence.races.scenarios.program import Scenario
from warfence.races.scenarios.steps import Trace

THREADS = "a log has the calls of one host thread"
AWAITS = "a wait for a record by its number binds later than its call; no call of a framework does"
ENDLESS = "an execution of it never ends"
STALE = "a wrong value in the right order"
REFUSED = (WarfenceError, NameError)  # what players raise where the runtime refuses a call aloud


class Player(Protocol):
    """Plays one trace at a time."""

    def lacks(self, trace: Trace, memories: Memories) -> str:
        """Why the calls of this trace cannot be made here; empty when they can."""
        ...

    def play(self, trace: Trace, memories: Memories) -> Findings:
        """Make all calls, and check what was recorded. Raises one of `REFUSED` where a call is refused."""
        ...


@dataclass(frozen=True, slots=True)
class Judged:
    """One scenario. verdict: ok, bad, over or error; empty where it was not played, for the reason in `lacks`.

    kinds: of all that the checker found. refused: what the runtime said where it refused a call.
    """

    id: str
    expect: str
    verdict: str
    kinds: tuple[str, ...] = ()
    refused: str = ""
    lacks: str = ""

    @property
    def right(self) -> bool:
        """As expected; what is refused aloud need not be found in a log."""
        return not self.verdict or self.verdict == self.expect or (self.verdict == "error" and self.expect == "bad")


def judge(scenario: Scenario, player: Player) -> Judged:
    """Play a scenario in the order that shows its verdict; a right one in several."""
    outcome = explore(scenario)
    played = played_of(outcome)
    lacks = next(filter(None, (_lacks(outcome, *one) or player.lacks(*one) for one in played)), "")
    if lacks:
        return Judged(scenario.id, scenario.expect, "", lacks=lacks)
    kinds: set[str] = set()
    for one in played:
        try:
            kinds |= player.play(*one).kinds()
        except REFUSED as refused:
            return Judged(scenario.id, scenario.expect, "error", tuple(sorted(kinds)), str(refused))
    return Judged(scenario.id, scenario.expect, verdict_of(kinds, scenario.expect), tuple(sorted(kinds)))


def played_of(outcome: Outcome) -> list[tuple[Trace, Memories]]:
    """The orders of calls that are played of an explored scenario."""
    return list(traces_of(outcome)) if outcome.verdict == "ok" else [(outcome.trace, outcome.trace.memories)]


def judge_all(scenarios: Iterable[Scenario], player: Player) -> list[Judged]:
    """All of them, one after the other."""
    return [judge(one, player) for one in scenarios]


def verdict_of(kinds: Iterable[str], expect: str) -> str:
    """bad: accesses race. ok: none do, though a wait may be one that nothing was recorded for, or a fence stronger than needed
    (an interface has steps of its own, which a scenario leaves out), unless that is what is expected."""
    found = set(kinds)
    if "race" in found:
        return "bad"
    return "over" if "over-fencing" in found and expect == "over" else "ok"


def recall_and_precision(results: Sequence[Judged]) -> tuple[float, float]:
    """Of the bad programs those found, and of those found bad the bad ones. What was refused aloud was found."""
    bad = {one.id for one in results if one.verdict and one.expect == "bad"}
    found = {one.id for one in results if one.verdict == "bad" or (one.verdict == "error" and one.expect == "bad")}
    return len(found & bad) / max(len(bad), 1), len(found & bad) / max(len(found), 1)


def _lacks(outcome: Outcome, trace: Trace, memories: Memories) -> str:
    """What no execution shows, whoever records it."""
    if outcome.verdict == "cycle":
        return ENDLESS
    if outcome.witness is not None and outcome.witness.wrong_write:
        return STALE
    if len({op.thread for op in trace.ops}) > 1:
        return THREADS
    return AWAITS if any(op.kind == "awaits" for op in trace.ops) else ""
