"""What lanes showed of a scenario, against what is expected of it.

bad: values differ from those of the serial order. held: the runtime itself did not let an access run that no wait holds.
ok: every adversarial order was tried, and the values are intact. over: an access stood though no conflict needs it to.
cycle: the lanes stand. error: the runtime refused a call. early: an access ran that the explorer says cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from warfence.core.errors import InputError
from warfence.races.replay.driver import Driver, Observed, Ran
from warfence.races.replay.machine import Machines
from warfence.races.replay.parts import donates
from warfence.races.replay.plan import Attempt, attempts, repaired_attempts
from warfence.races.replay.values import NOT_SHOWN, place, say
from warfence.races.scenarios.explore import Outcome, explore
from warfence.races.scenarios.library import find
from warfence.races.scenarios.program import Scenario
from warfence.races.scenarios.steps import Step

WORST_FIRST = ("early", "error", "cycle", "bad", "held", "over", "ok")


@dataclass(frozen=True)
class Shown:
    """One attempt. held, tried: the access that stood at its gate, and the one that was tried meanwhile."""

    held: Step | None
    tried: Step | None
    verdict: str
    said: str
    attempt: Attempt
    times: tuple[Ran, ...]


@dataclass(frozen=True)
class Replayed:
    """One scenario on one machine. shown: empty where the backend lacks what it takes, for the reason given."""

    id: str
    group: str
    machine: str
    expect: str
    explored: str
    shown: tuple[Shown, ...]
    lacks: str
    may_hold: bool

    @property
    def verdict(self) -> str:
        return min((one.verdict for one in self.shown), key=WORST_FIRST.index, default="")

    @property
    def worst(self) -> Shown:
        """The attempt that gives the verdict."""
        return min(self.shown, key=lambda one: WORST_FIRST.index(one.verdict))

    @property
    def agrees(self) -> bool:
        """As expected and as explored; or what goes wrong elsewhere is held by a runtime that guards its arrays."""
        if not self.shown:
            return True
        held = self.verdict == "held" and self.may_hold and self.expect in ("bad", "ok")
        return self.explored == self.expect and (held or self.verdict == self.expect)

    def document(self) -> dict[str, object]:
        """As plain data, for JSON."""
        return {
            "id": self.id, "group": self.group, "machine": self.machine, "expect": self.expect, "explored": self.explored,
            "verdict": self.verdict, "agrees": self.agrees, "lacks": self.lacks,
            "attempts": [
                {"held": one.held and place(one.held), "tried": one.tried and place(one.tried),
                 "verdict": one.verdict, "said": one.said}
                for one in self.shown
            ],
        }  # fmt: skip


def replay(scenario: Scenario, machines: Machines, values: Mapping[str, int] | None = None) -> Replayed:
    """Explore a scenario, and force what was found. FenceError: the lanes never came to rest."""
    outcome = explore(scenario, values)
    return _replayed(scenario, machines, outcome, attempts(outcome, values))


def replay_fixed(scenario: Scenario, machines: Machines, values: Mapping[str, int] | None = None) -> Replayed:
    """The same adversarial order in the repaired twin; where no added wait repairs it, all of the fixed twin.

    InputError: there is neither.
    """
    outcome = explore(scenario, values)
    if twin := repaired_attempts(outcome, values):
        repaired = replace(twin[0].scenario, id=f"{scenario.id}, repaired")
        return _replayed(repaired, machines, twin[0], twin[1], explored="ok")  # its other waits may be too strong
    if not scenario.fixed_by:
        why = "no added wait repairs it" if outcome.verdict == "bad" else "there is no race in it to repair"
        raise InputError(
            f"scenario '{scenario.id}' is {outcome.verdict}: {why}, and its file names no fixed twin; replay it without "
            f"--fixed, or name a twin with 'fixed-by'"
        )
    return replay(find(scenario.fixed_by), machines)


def _replayed(
    scenario: Scenario, machines: Machines, outcome: Outcome, tried: list[Attempt], explored: str = ""
) -> Replayed:
    lacks = next(filter(None, (machines.lacks(one.trace) for one in tried)), "") if tried else NOT_SHOWN
    shown = [] if lacks else [_shown(outcome, one, _run(one, machines)) for one in tried]
    may_hold = machines.guards or any(donates(one.trace) for one in tried)
    return Replayed(
        scenario.id, scenario.group, machines.name, scenario.expect, explored or outcome.verdict, tuple(shown), lacks, may_hold
    )  # fmt: skip


def _run(attempt: Attempt, machines: Machines) -> Observed:
    return Driver(attempt, machines.make(attempt.trace, attempt.memories)).run()


def _shown(outcome: Outcome, attempt: Attempt, seen: Observed) -> Shown:
    steps = attempt.trace.steps
    held = None if attempt.held is None else steps[attempt.held]
    tried = None if attempt.tried is None else steps[attempt.tried]
    return Shown(held, tried, *_verdict(outcome, attempt, seen, held, tried), attempt, seen.times)


def _verdict(
    outcome: Outcome, attempt: Attempt, seen: Observed, held: Step | None, tried: Step | None
) -> tuple[str, str]:
    trace = attempt.trace
    if seen.refused:
        call, message = seen.refused
        right = call == len(trace.ops) - 1 or outcome.verdict != "error"
        return "error" if right else "early", f"refused by the runtime, line {trace.ops[call].line}: {message}"
    if seen.standing:
        return "cycle", f"nothing can go on: {_stand(outcome, seen)}"
    if seen.differences:
        more = f", and {len(seen.differences) - 1} more" if len(seen.differences) > 1 else ""
        return "bad", say(trace, seen.differences[0]) + more
    if held is None or tried is None:
        return "ok", "ran in the only order; intact"
    at_gate = f"while {place(held)} stood at its gate"
    if seen.stood is not None:
        return "held", f"{place(trace.steps[seen.stood])} was held by the runtime {at_gate}; intact"
    if seen.ran and not attempt.passes:
        return "early", f"{place(tried)} ran {at_gate}, which the explorer rules out"
    if seen.ran and attempt.conflict:
        return "bad", f"{place(tried)} ran {at_gate}, although it was called last; no value that is left shows it"
    if seen.ran:
        return "ok", f"{place(tried)} ran {at_gate}; intact"
    if outcome.verdict == "over" and not attempt.conflict:
        return "over", f"{place(tried)} stood at a wait {at_gate}, though no conflict is between them"
    return "ok", f"{place(tried)} stood {at_gate}; intact"


def _stand(outcome: Outcome, seen: Observed) -> str:
    """Who stands, each with the step that it cannot make."""
    first: dict[str, Step] = {}
    for one in outcome.order.standing:
        first.setdefault(outcome.order.steps[one].lane, outcome.order.steps[one])
    said = [f"{name} stands at line {first[name].line}: {first[name].title}" for name in seen.standing if name in first]
    return "; ".join(said) or ", ".join(seen.standing)
