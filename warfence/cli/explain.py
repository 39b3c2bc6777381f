"""`warfence explain`: which rule of the policy fires for a launch, why, and what the public states of history answered."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from warfence.cli import options as given
from warfence.cli import words
from warfence.cli.output import print_json, print_table, prose, say, screen
from warfence.cli.rule_sets import (
    COLUMNS,
    NAMES,
    OURS,
    LaunchCase,
    RuleDifference,
    alike,
    differences,
    folded,
    history,
    launch_cases,
    rule_set,
)
from warfence.core.attention import make_attention
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode
from warfence.core.policy import Decision, Rule, decide
from warfence.serve.spec import get

WIDTH = 140  # of the table of differences where nothing limits it
LEGEND = """\
UNSOUND: the ticket is taken while shared reads go on; `warfence boundary --rules` measures it. never taken: another
launch ends the step, and the barrier takes that one's ticket. later, earlier: sound, and waits longer or less long than
ours. The attention kinds are ours; that a public state would be unsound with one does not say that it had such a backend. What
its workers do around the rules is not in them: since 35059 NGRAM's worker dropped the verify's record itself, until #35198."""


def explain(
    mode: Annotated[str, typer.Option(help=f"{', '.join(m.value for m in ForwardMode)}.")] = "decode",
    attention: Annotated[str, typer.Option(help=f"Declares where its reads end: {words.ATTENTION}")] = "captured",
    spec: given.Algorithm = "none",
    marker: Annotated[bool, typer.Option(help="This captured forward carries an in-graph marker.")] = True,
    prefill: Annotated[bool, typer.Option("--prefill", help="The prefill switch is on.")] = False,
    rules: Annotated[str, typer.Option(help=f"{NAMES}.")] = "warfence",
    differences: Annotated[
        bool,
        typer.Option("--differences", help="List all launches for which the rule set answers otherwise than ours."),
    ] = False,
    past: Annotated[
        bool,
        typer.Option("--history", help="What each public state answered for this launch, and where that is unsound."),
    ] = False,
    as_json: given.AsJson = False,
) -> None:
    """Say where a launch publishes its read-done ticket, and by which rule.

    A rule set is named after the pull request (sgl-project/sglang) that brought it. --differences needs none of the other
    options but --rules and --prefill.
    """
    chosen = rule_set(rules)
    if differences and past:
        raise InputError("--differences is about all launches and --history about one; choose one of the two")
    if differences:
        _differences(rules, prefill, as_json)
        return
    modes = {m.value: m for m in ForwardMode}
    if mode not in modes:
        raise InputError(f"unknown mode '{mode}'; choose one of: {', '.join(modes)}")
    make_attention(attention, ())
    case = LaunchCase(modes[mode], attention, get(spec), marker, prefill)
    decision = decide(case.query, chosen)
    if as_json:
        states = {a.state.name: _answer(case, a.decision) | {"date": a.state.date} for a in history(case)}
        print_json(_launch(case) | {"rules": rules, "answer": _answer(case, decision), "states": states})
        return
    console = screen()
    _print(console, case, rules, chosen, decision)
    if past:
        _print_history(console, case)
    else:
        others = [a for a in history(case) if a.decision.policy is not decision.policy]
        unsound = sum(a.unsound for a in others)
        say(
            console,
            f"{len(others)} of {len(history(case))} public states answer otherwise, {unsound} unsound: --history",
        )


def _print(console: Console, case: LaunchCase, name: str, rules: tuple[Rule, ...], decision: Decision) -> None:
    """The launch, and the rules up to the one that fires."""
    spec = case.algorithm.name
    say(
        console,
        f"{case.mode.value}, attention {case.attention} (declares {case.query.declared.name}), spec {spec}, marker"
        f" {'yes' if case.marker else 'no'}",
    )
    if not case.happens:
        say(console, f"With --spec {spec} no step has such a launch; the rules answer all the same.")
    elif case.last_phase is not case.mode:
        say(console, f"It does not end its step: {case.last_phase.value} follows, and the barrier takes that ticket.")
    for rule in rules:
        fired = rule.name == decision.rule
        because = f", because {rule.reason}" if fired else ""
        mark, answer = ("->", rule.policy.name) if fired else ("  ", f"does not apply (it answers {rule.policy.name})")
        say(console, f"{mark} {rule.name}: {answer}{because}")
        if fired:
            break
    if case.unsound(decision.policy):
        say(console, f"UNSOUND: by '{name}' the ticket is taken while reads go on.")


def _print_history(console: Console, case: LaunchCase) -> None:
    """One row a public state."""
    rows = [
        (
            a.state.name,
            a.state.date,
            a.decision.policy.name,
            a.decision.rule,
            "UNSOUND" if a.unsound else "",
            a.state.brought,
        )
        for a in history(case)
    ]
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    print_table(
        "Public states of sgl-project/sglang",
        ("state", "date", "publishes", "rule", "verdict", "it brought"),
        rows,
        console,
    )


def _launch(case: LaunchCase) -> dict[str, Any]:
    return {
        "mode": case.mode.value, "attention": case.attention, "declared": case.query.declared.name,
        "spec": case.algorithm.name, "marker": case.marker, "prefill": case.prefill, "last_phase": case.last_phase.value,
    }  # fmt: skip


def _answer(case: LaunchCase, answer: Decision) -> dict[str, Any]:
    unsound = case.unsound(answer.policy)
    return {"policy": answer.policy.value, "rule": answer.rule, "reason": answer.reason, "unsound": unsound}


def _differences(rules: str, prefill: bool, as_json: bool) -> None:
    """One table for the rule set, or, when ours is chosen, one for each that any public states share."""
    chosen = [[rules]] if rules != OURS else alike()
    if as_json:
        print_json(
            {name: [_difference(one) for one in differences(name, prefill)] for names in chosen for name in names}
        )
        return
    for names in chosen:
        _print_differences(names, differences(names[0], prefill))


def _print_differences(names: list[str], found: list[RuleDifference]) -> None:
    unsound = sum(one.verdict == "UNSOUND" for one in found)
    listed = ", ".join(f"'{name}'" for name in names)
    title = f"Rules {listed}: {len(found)} of {len(launch_cases())} launches differ, {unsound} unsound"
    console = screen()
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    print_table(title, (*COLUMNS, names[0], "verdict"), folded(found), console)
    prose(console, LEGEND)


def _difference(one: RuleDifference) -> dict[str, Any]:
    ours, theirs = ({"policy": a.policy.value, "rule": a.rule} for a in (one.ours, one.theirs))
    return _launch(one.case) | {"ours": ours, "theirs": theirs, "verdict": one.verdict}
