"""An outcome in words and as plain data: what was found, the interleaving that shows it, and what would repair it."""

from __future__ import annotations

from typing import Any

from warfence.races.scenarios.explore import Outcome
from warfence.races.scenarios.repair import Repaired
from warfence.races.scenarios.steps import Step
from warfence.races.scenarios.text import text
from warfence.races.scenarios.witness import Witness


def headline(outcome: Outcome) -> str:
    """One line: name, verdict, and whether that was expected."""
    scenario = outcome.scenario
    agrees = "as expected" if outcome.expected else f"NOT as expected, which is {scenario.expect}"
    return f"{scenario.id}: {outcome.verdict}, {agrees}"


def interleaving(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """(lanes, rows): the few steps that show what is wrong, in their order, each in the column of its lane."""
    if outcome.witness is None:
        return [], []
    steps = [outcome.order.steps[one] for one in outcome.witness.shown]
    lanes = [*dict.fromkeys(step.lane for step in outcome.order.steps)]
    lanes = [lane for lane in lanes if any(step.lane == lane for step in steps)]
    return lanes, [[_cell(step) if step.lane == lane else "" for lane in lanes] for step in steps]


def sentences(outcome: Outcome, repaired: Repaired | None) -> list[str]:
    """Everything else about a verdict, a sentence each."""
    steps, said = outcome.order.steps, []
    if outcome.reason:
        said.append(f"{'refused' if outcome.verdict == 'error' else 'nothing can go on'}: {outcome.reason}")
    if witness := outcome.witness:
        first, second = steps[witness.first], steps[witness.second]
        said.append(f"accesses: {_place(first)} and {_place(second)}; the second {_how(witness, first, second)}")
        said.append(f"edge: {witness.missing}")
    if outcome.verdict == "bad" and repaired is None:
        said.append("repair: no added wait makes this right")
    if repaired:
        said += [f"repair: {one}" for one in repaired.added]
        said += [f"left out: {one} (nothing needs it any more)" for one in repaired.left_out]
        said.append(f"the repaired program was explored: {repaired.verdict}")
    for late in outcome.late:
        wait = steps[late.step]
        many = f"{len(late.vain)} stage{'s' if len(late.vain) != 1 else ''}"
        vain = ", ".join(f"'{steps[one].title}'" for one in late.vain)
        said.append(f"too strong: {_place(wait)} waits for {many} of lane {late.source} in vain: {vain}")
        if late.needed is None:
            said.append("earlier: no conflict needs this wait; leave it out")
        else:
            said.append(f"earlier: record right behind {_place(steps[late.needed])}, {many} before")
    for one in outcome.trace.unbound:
        said.append(f"note: {_place(steps[one])}, an event that holds no such record; that orders nothing")
    for one in outcome.trace.copies:
        said.append(f"note: {_place(steps[one])} is safe by copy: a live view keeps the old memory")
    return said


def document(outcome: Outcome, repaired: Repaired | None) -> dict[str, Any]:
    """The outcome as plain data, for JSON. Steps of `order` are ids; `steps` says what each of them is."""
    scenario, witness, steps = outcome.scenario, outcome.witness, outcome.order.steps
    return {
        "id": scenario.id,
        "title": scenario.title,
        "group": scenario.group,
        "source": scenario.source,
        "expect": scenario.expect,
        "verdict": outcome.verdict,
        "as_expected": outcome.expected,
        "fixed_by": scenario.fixed_by,
        "traces": outcome.traces,
        "steps": [{"id": one.id, "lane": one.lane, "line": one.line, "what": one.title} for one in steps],
        "reason": outcome.reason,
        "witness": witness
        and {
            "pair": [witness.first, witness.second],
            "order": witness.order,
            "shown": witness.shown,
            "missing": witness.missing,
            "wrong_write": witness.wrong_write,
        },
        "repair": repaired
        and {
            "added": repaired.added,
            "left_out": repaired.left_out,
            "verdict": repaired.verdict,
            "text": text(repaired.scenario),
        },
        "late": [
            {"step": one.step, "upto": one.upto, "needed": one.needed, "in_vain": one.vain, "lane": one.source}
            for one in outcome.late
        ],
    }


def _how(witness: Witness, first: Step, second: Step) -> str:
    """What is wrong with the second access of a witness. The calls of two threads have no order of their own."""
    if witness.wrong_write:
        return "sees the wrong write"
    named = next((one.launch for step in (first, second) for one in step.reaches if one.launch), 0)
    if named:
        return f"ran first here, so that the read does not see the value of launch {named}"
    if first.thread != second.thread:
        return f"ran first here, though thread {second.thread} called it after the call of thread {first.thread}"
    return "ran first here, though it was called last"


def _cell(step: Step) -> str:
    launch = f" (launch {step.launch})" if step.launch and step.kind in ("access", "records") else ""
    return step.title + launch


def _place(step: Step) -> str:
    return f"'{step.lane} {step.title}' (line {step.line})"
