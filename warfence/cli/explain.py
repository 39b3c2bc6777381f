"""`warfence explain`: which rule of the policy fires for a launch, why, and where the historical rule sets differ."""

from __future__ import annotations

from typing import Annotated

import typer

from warfence.cli.output import JsonFlag, print_json, say, screen


def explain(
    mode: Annotated[str, typer.Option(help="Forward mode.")] = "decode",
    attention: Annotated[str, typer.Option(help="Attention backend, which declares where its reads end.")] = "captured",
    spec: Annotated[str, typer.Option(help="Speculative algorithm.")] = "none",
    marker: Annotated[bool, typer.Option(help="This captured forward carries an in-graph marker.")] = True,
    prefill: Annotated[bool, typer.Option(help="The prefill switch is on.")] = False,
    segmented: Annotated[bool, typer.Option(help="A chain of captured segments that re-reads.")] = False,
    rules: Annotated[str, typer.Option(help="Rule set to explain.")] = "warfence",
    as_json: JsonFlag = False,
) -> None:
    """Say where a launch publishes its read-done ticket, and by which rule. Compares all rule sets."""
    from warfence.attention import make_attention
    from warfence.errors import InputError
    from warfence.modes import ForwardMode
    from warfence.policy import RULE_SETS, Query, decide, is_early
    from warfence.spec import get

    modes = {m.value: m for m in ForwardMode}
    if mode not in modes:
        raise InputError(f"unknown mode '{mode}'; choose one of: {', '.join(modes)}")
    if rules not in RULE_SETS:
        raise InputError(f"unknown rule set '{rules}'; choose one of: {', '.join(RULE_SETS)}")
    algorithm = get(spec)
    declared = make_attention(attention, (1,)).shared_read_ends(modes[mode])
    query = Query(
        modes[mode],
        declared,
        marker=marker,
        verify_read_done=algorithm.supports_target_verify_read_done,
        prefill_enabled=prefill,
        speculative=algorithm.speculative,
        prefill_read_done=algorithm.supports_prefill_read_done,
        segmented=segmented,
    )
    answers = {name: decide(query, which) for name, which in RULE_SETS.items()}
    early = {name: is_early(query, answer.policy) for name, answer in answers.items()}
    if as_json:
        sets = {
            n: {"policy": a.policy.value, "rule": a.rule, "reason": a.reason, "earlier_than_declared": early[n]}
            for n, a in answers.items()
        }
        print_json({"mode": mode, "attention": attention, "declared": declared.name, "rules": rules, "sets": sets})
        return
    console, chosen = screen(), answers[rules]
    say(
        console,
        f"{mode}, attention {attention} (declares {declared.name}), spec {spec}, marker {'yes' if marker else 'no'}",
    )
    for rule in RULE_SETS[rules]:
        fired = rule.name == chosen.rule
        say(
            console,
            f"{'->' if fired else '  '} {rule.name}: {rule.policy.name}"
            + (f", because {rule.reason}" if fired else ""),
        )
        if fired:
            break
    for name, answer in answers.items():
        if name == rules:
            continue
        same = "the same" if answer.policy is chosen.policy else "DIFFERENT"
        note = "; EARLIER than the reads end: unsound" if early[name] else ""
        say(console, f"rules '{name}': {answer.policy.name} by {answer.rule} ({same}{note})")
