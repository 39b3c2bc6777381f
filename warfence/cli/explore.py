"""`warfence explore`: the verdict of scenario files, by exploring everything that host calls and waits permit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from warfence.cli import options as given
from warfence.cli.exits import DONE, FAILED
from warfence.cli.output import print_json, print_table, say, screen
from warfence.core.errors import InputError
from warfence.host.files import write_output
from warfence.races.scenarios.explore import Outcome
from warfence.races.scenarios.explore import explore as explore_one
from warfence.races.scenarios.library import catalogue as all_scenarios
from warfence.races.scenarios.library import find
from warfence.races.scenarios.pages import write_pages
from warfence.races.scenarios.parse import read
from warfence.races.scenarios.repair import Repaired, repair
from warfence.races.scenarios.sentences import document, headline, interleaving, sentences
from warfence.races.scenarios.text import text as normal


def explore(
    file: given.ScenarioFile = "",
    catalogue: Annotated[bool, typer.Option("--catalogue", help="Explore every scenario that warfence has.")] = False,
    parameters: given.Parameters = None,
    text: Annotated[bool, typer.Option("--text", help="Print the scenario in its normal form, and leave.")] = False,
    rewrite: Annotated[bool, typer.Option("--format", help="Write the file in its normal form, and leave.")] = False,
    pages: Annotated[Path | None, typer.Option(help="With --catalogue: write a page for each group here.")] = None,
    as_json: given.AsJson = False,
) -> None:
    """Find every interleaving of a scenario that goes wrong, with a witness and the smallest wait that repairs it.

    Exit status: 0 every verdict is as expected, 1 one is not, 2 a scenario that cannot be read.
    """
    if bool(file) == catalogue:
        raise InputError(f"{'a file and' if file else 'neither a file nor'} --catalogue; give one of the two")
    if pages and not catalogue:
        raise InputError("--pages is for the whole catalogue; give --catalogue, too")
    if (text or rewrite) and catalogue:
        raise InputError(f"{'--text' if text else '--format'} is for one file; give a file")
    path = Path(file)
    scenarios = all_scenarios() if catalogue else (read(path) if path.suffix or path.exists() else find(file),)
    if text:
        typer.echo(normal(scenarios[0]), nl=False)
        raise typer.Exit(DONE)
    if rewrite:
        if not path.exists():
            raise InputError(f"--format writes a file; '{file}' is a scenario of the catalogue, see --text")
        write_output(path, normal(scenarios[0]))
        raise typer.Exit(DONE)
    if pages:
        say(screen(quiet=as_json), f"{len(write_pages(pages))} pages in {pages}")
    outcomes = [explore_one(one, set_values(parameters or [])) for one in scenarios]
    repairs = [repair(one, set_values(parameters or [])) for one in outcomes]
    if as_json:
        print_json(_document(outcomes, [document(*both) for both in zip(outcomes, repairs, strict=True)]))
    elif catalogue:
        _print_all(screen(), outcomes, repairs)
    else:
        _print_one(screen(), outcomes[0], repairs[0])
    raise typer.Exit(DONE if all(one.expected for one in outcomes) else FAILED)


def set_values(parameters: list[str]) -> dict[str, int]:
    """The parameters that `--set NAME=NUMBER` gives. InputError: no number."""
    values = {}
    for one in parameters:
        name, _, number = one.partition("=")
        if not number.lstrip("-").isdecimal():
            raise InputError(f"--set '{one}'; give a parameter and a whole number, such as --set N=5")
        values[name] = int(number)
    return values


def _document(outcomes: list[Outcome], documents: list[dict[str, Any]]) -> dict[str, Any]:
    """What all verdicts say together, and each of them."""
    wrong = [one for one in outcomes if one.scenario.expect == "bad"]
    found = [one for one in outcomes if one.verdict == "bad"]
    both = sum(one.expected for one in found)
    return {
        "scenarios": len(outcomes),
        "as_expected": sum(one.expected for one in outcomes),
        "recall": both / len(wrong) if wrong else None,
        "precision": both / len(found) if found else None,
        "outcomes": documents,
    }


def _print_all(console: Console, outcomes: list[Outcome], repairs: list[Repaired | None]) -> None:
    rows = [(one.scenario.group, one.scenario.id, one.scenario.expect, one.verdict) for one in outcomes]
    print_table("catalogue", ("group", "scenario", "expected", "verdict"), rows, console)
    for outcome, repaired in zip(outcomes, repairs, strict=True):
        if not outcome.expected:
            _print_one(console, outcome, repaired)
    agreed = sum(one.expected for one in outcomes)
    say(console, f"{len(outcomes)} scenarios, {agreed} verdicts as expected, {len(outcomes) - agreed} not")


def _print_one(console: Console, outcome: Outcome, repaired: Repaired | None) -> None:
    say(console, headline(outcome))
    say(console, f"{outcome.scenario.title} ({outcome.scenario.source})")
    lanes, rows = interleaving(outcome)
    if rows:
        say(console)
        print_table("interleaving, from top to bottom", lanes, rows, console)
    for sentence in sentences(outcome, repaired):
        say(console, sentence)
    many = f"{outcome.traces} order{'s' if outcome.traces != 1 else ''}"
    say(console, f"{many} of host calls, steps of the trace shown: {len(outcome.order.steps)}")
