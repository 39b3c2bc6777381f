"""`warfence explain`: which rule of the policy fires for a launch, why, and where the historical rule sets differ."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from warfence.cli.output import JsonFlag, print_json, print_table, prose, say, screen
from warfence.cli.rule_sets import COLUMNS, OURS, Difference, LaunchCase, differences, folded, launch_cases, rule_set
from warfence.core.attention import KINDS, make_attention
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode
from warfence.core.policy import RULE_SETS, Decision, decide
from warfence.serve.spec import get

WIDTH = 140  # of the table of differences where nothing limits it
LEGEND = """\
UNSOUND: the ticket is taken while shared reads go on; `warfence boundary --rules` measures it. never taken: another
launch ends the step, and the barrier takes that one's ticket. later, earlier: sound, and waits longer or less long than
ours."""


def explain(
    mode: Annotated[str, typer.Option(help=f"{', '.join(m.value for m in ForwardMode)}.")] = "decode",
    attention: Annotated[str, typer.Option(help=f"{', '.join(KINDS)}: it declares where its reads end.")] = "captured",
    spec: Annotated[str, typer.Option(help="none, ngram, dflash, eagle, or a plug-in's name.")] = "none",
    marker: Annotated[bool, typer.Option(help="This captured forward carries an in-graph marker.")] = True,
    prefill: Annotated[bool, typer.Option("--prefill", help="The prefill switch is on.")] = False,
    rules: Annotated[str, typer.Option(help="warfence, first-published or unified.")] = "warfence",
    differences: Annotated[
        bool,
        typer.Option("--differences", help="List all launches for which the rule set answers otherwise than ours."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Say where a launch publishes its read-done ticket, and by which rule. Compares all rule sets.

    --differences needs none of the other options but --rules and --prefill.
    """
    rule_set(rules)
    if differences:
        _differences(rules, prefill, as_json)
        return
    modes = {m.value: m for m in ForwardMode}
    if mode not in modes:
        raise InputError(f"unknown mode '{mode}'; choose one of: {', '.join(modes)}")
    make_attention(attention, ())
    case = LaunchCase(modes[mode], attention, get(spec), marker, prefill)
    answers = {name: decide(case.query, which) for name, which in RULE_SETS.items()}
    if as_json:
        print_json(_launch(case) | {"rules": rules, "sets": {n: _answer(case, a) for n, a in answers.items()}})
    else:
        _print(screen(), case, rules, answers)


def _print(console: Console, case: LaunchCase, rules: str, answers: dict[str, Decision]) -> None:
    """The launch, the rules up to the one that fires, and what the other sets answer."""
    chosen, spec = answers[rules], case.algorithm.name
    say(
        console,
        f"{case.mode.value}, attention {case.attention} (declares {case.query.declared.name}), spec {spec}, marker"
        f" {'yes' if case.marker else 'no'}",
    )
    if not case.happens:
        say(console, f"With --spec {spec} no step has such a launch; the rules answer all the same.")
    elif case.last_phase is not case.mode:
        say(console, f"It does not end its step: {case.last_phase.value} follows, and the barrier takes that ticket.")
    for rule in RULE_SETS[rules]:
        fired = rule.name == chosen.rule
        because = f", because {rule.reason}" if fired else ""
        say(console, f"{'->' if fired else '  '} {rule.name}: {rule.policy.name}{because}")
        if fired:
            break
    if case.unsound(chosen.policy):
        say(console, f"UNSOUND: by '{rules}' the ticket is taken while reads go on.")
    for name, answer in answers.items():
        if name != rules:
            same = "the same" if answer.policy is chosen.policy else "DIFFERENT"
            note = "; UNSOUND: taken while reads go on" if case.unsound(answer.policy) else ""
            say(console, f"rules '{name}': {answer.policy.name} by {answer.rule} ({same}{note})")


def _launch(case: LaunchCase) -> dict[str, Any]:
    return {
        "mode": case.mode.value, "attention": case.attention, "declared": case.query.declared.name,
        "spec": case.algorithm.name, "marker": case.marker, "prefill": case.prefill, "last_phase": case.last_phase.value,
    }  # fmt: skip


def _answer(case: LaunchCase, answer: Decision) -> dict[str, Any]:
    unsound = case.unsound(answer.policy)
    return {"policy": answer.policy.value, "rule": answer.rule, "reason": answer.reason, "unsound": unsound}


def _differences(rules: str, prefill: bool, as_json: bool) -> None:
    """One table for the rule set, or for each historical one when ours is chosen: it differs from itself nowhere."""
    chosen = [rules] if rules != OURS else [name for name in RULE_SETS if name != OURS]
    found = {name: differences(name, prefill) for name in chosen}
    if as_json:
        print_json({name: [_difference(one) for one in each] for name, each in found.items()})
        return
    for name, each in found.items():
        _print_differences(name, each)


def _print_differences(name: str, found: list[Difference]) -> None:
    unsound = sum(one.verdict == "UNSOUND" for one in found)
    title = f"Rules '{name}': {len(found)} of {len(launch_cases())} launches differ, {unsound} unsound"
    console = screen()
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    print_table(title, (*COLUMNS, name, "verdict"), folded(found), console)
    prose(console, LEGEND)


def _difference(one: Difference) -> dict[str, Any]:
    ours, theirs = ({"policy": a.policy.value, "rule": a.rule} for a in (one.ours, one.theirs))
    return _launch(one.case) | {"ours": ours, "theirs": theirs, "verdict": one.verdict}
