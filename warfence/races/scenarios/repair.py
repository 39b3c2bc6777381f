"""The smallest added wait that makes a bad program right: found from the witness, and explored again.

The repair of a race is a record right behind the first access and a wait for it right before the second one. A wait that
was bound too early and that nothing needs any more is then left out, so that the repaired program is `ok`, not `over`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from warfence.races.scenarios.explore import Outcome, explore
from warfence.races.scenarios.expression import Binary, Named, Number
from warfence.races.scenarios.operations import Path
from warfence.races.scenarios.program import (
    HOST,
    Call,
    Choose,
    Declare,
    Declared,
    LaunchBlock,
    Ref,
    Repeat,
    Scenario,
    Statement,
    Thread,
)
from warfence.races.scenarios.steps import Step

MOST = 8  # waits added to one program


@dataclass(frozen=True)
class Repaired:
    """added: each wait as a sentence. left_out: waits that nothing needs any more. verdict: ok, at worst over."""

    scenario: Scenario
    added: tuple[str, ...]
    left_out: tuple[str, ...]
    verdict: str


def repair(outcome: Outcome, values: Mapping[str, int] | None = None) -> Repaired | None:
    """The repaired program; None where no wait repairs it, or nothing is to be repaired."""
    if outcome.verdict != "bad":
        return None
    scenario = replace(outcome.scenario, id=f"{outcome.scenario.id}-repaired", fixed_by="", expect="ok")
    added: list[str] = []
    while outcome.verdict == "bad" and len(added) < MOST:
        fixed = _with_wait(scenario, outcome)
        if fixed is None:
            return None
        scenario, sentence = fixed
        added.append(sentence)
        outcome = explore(scenario, values)
    left_out = []
    while outcome.verdict == "over":
        for late in outcome.late:
            step = outcome.order.steps[late.step]
            shorter = replace(scenario, body=_edit(scenario.body, late.path, ()))
            again = explore(shorter, values)
            if again.verdict in ("ok", "over"):
                left_out.append(f"line {step.line}: {step.lane} {step.title}")
                scenario, outcome = shorter, again
                break
        else:
            break
    if outcome.verdict not in ("ok", "over"):
        return None
    return Repaired(scenario, tuple(added), tuple(left_out), outcome.verdict)


def _with_wait(scenario: Scenario, outcome: Outcome) -> tuple[Scenario, str] | None:
    """One record and one wait more; None where the first access is a host thread's, which no event can promise."""
    if not outcome.races:
        return None  # a wrong write in the right order
    pair = min(outcome.races, key=lambda one: (one[1], -one[0]))
    first, second = (outcome.order.steps[one] for one in pair)
    if first.lane == first.thread:
        return None
    event = _new_name(scenario)
    call = outcome.trace.ops[second.call]
    inside = len(first.path) > len(outcome.trace.ops[first.call].path)
    name, apart = _turns(outcome, first, second)
    ref = Ref(
        event, Binary(Named(name), "%", Number(apart)) if apart > 1 else None
    )  # a ring: one event would bring all turns into a row
    record = Call("" if inside else first.lane, "records", event=ref)
    waiter = HOST if second.lane == second.thread else second.lane
    wait = Call(waiter, "syncs" if waiter == HOST else "waits", event=ref)
    last = outcome.order.steps[outcome.order.ends[first.id]]  # of its operation: there is no place inside one
    behind, before = (*last.path[:-1], last.path[-1] + 1), call.path
    body = scenario.body
    for path, statement in sorted([(before, wait), (behind, record)], key=lambda one: one[0], reverse=True):
        body = _edit(body, path, (statement,), insert=True)
    at = len([*takewhile(lambda one: isinstance(one, Declare), body)])
    body = (*body[:at], Declare("event", (Declared(event, Number(apart) if apart > 1 else None),)), *body[at:])
    said = f"{event}[{ref.index}]" if ref.index else event
    say = "host syncs" if waiter == HOST else f"{waiter} waits"
    return (
        replace(scenario, body=body),
        f"{first.lane} records {said} behind '{last.title}' (line {last.line}); "
        f"{say} {said} before '{second.title}' (line {second.line})",
    )


def _turns(outcome: Outcome, first: Step, second: Step) -> tuple[str, int]:
    """The innermost loop around both accesses, and how many of its turns lie between the two; ("", 0) without one."""
    name, depth, body = "", 0, outcome.scenario.body
    for at, place in enumerate(first.path):
        if first.path[: at + 1] != second.path[: at + 1] or not isinstance(one := body[place], Repeat | Thread):
            break
        name, depth, body = (one.name, at + 1, one.body) if isinstance(one, Repeat) else (name, depth, one.body)
    if not name:
        return "", 0
    turn = [sum(one.path == step.path and one.id < step.id for one in outcome.order.steps) for step in (first, second)]
    return name, turn[1] - turn[0]


def _edit(
    body: tuple[Statement, ...], path: Path, statements: tuple[Statement, ...], insert: bool = False
) -> tuple[Statement, ...]:
    """The body with these statements in the place of the one at `path`, or, with insert, before it."""
    place, *rest = path
    if not rest:
        return (*body[:place], *statements, *body[place + (not insert) :])
    one = body[place]
    if isinstance(one, Choose):
        branches = list(one.branches)
        branches[rest[0]] = _edit(branches[rest[0]], tuple(rest[1:]), statements, insert)
        return (*body[:place], replace(one, branches=tuple(branches)), *body[place + 1 :])
    assert isinstance(one, LaunchBlock | Repeat | Thread)
    return (*body[:place], replace(one, body=_edit(one.body, tuple(rest), statements, insert)), *body[place + 1 :])


def _new_name(scenario: Scenario) -> str:
    """A name for an event that the scenario does not have."""
    names = {one.name for part in scenario.body if isinstance(part, Declare) for one in part.items}
    number = 1
    while (name := "fence" if number == 1 else f"fence{number}") in names:
        number += 1
    return name
