"""`warfence bench`: how fast, behind every strategy, on every backend that is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from warfence.bench import document as documents
from warfence.bench import engine_runs, presets
from warfence.bench.cases import AXES, cases
from warfence.bench.compare import changes, differences, missing
from warfence.bench.group import LEAST_STEPS, QUICK, Effort, Open, chosen
from warfence.bench.plots import check_plots, draw
from warfence.bench.presets import PRESETS
from warfence.bench.run import BenchOptions, Found, run
from warfence.bench.strategies import NAMES
from warfence.cli import environment, survey, words
from warfence.cli import options as given
from warfence.cli.bench_view import print_changes, print_results
from warfence.cli.contenders import contenders
from warfence.cli.exits import CheckFailed, Interrupted
from warfence.cli.meter import metered
from warfence.cli.output import print_json, say, screens
from warfence.core.backend import Backend
from warfence.core.errors import InputError
from warfence.host.documents import plain
from warfence.host.files import check_output, write_output
from warfence.parity.suite import Contender
from warfence.serve.jobs.start import open_backend
from warfence.serve.jobs.workload import at_least

WHAT, OUT = "What is measured", "What is written"


def bench(
    backend: Annotated[list[str] | None, given.several_backends(panel=WHAT)] = None,
    device: Annotated[str, given.every_device(WHAT)] = "cpu",
    tables: Annotated[str | None, given.way("tables", WHAT)] = None,
    marker: Annotated[str | None, given.way("marker", WHAT)] = None,
    ticket: Annotated[str | None, given.way("ticket", WHAT)] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few steps of the smallest forward: under a minute.", rich_help_panel=WHAT)
    ] = False,
    axis: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(AXES)}; may be repeated.", show_default="one point", rich_help_panel=WHAT),
    ] = None,
    forward: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{', '.join(PRESETS)}, or LAYERSxHIDDEN; may be repeated.", show_default="those that fit the device",
            rich_help_panel=WHAT,
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(NAMES)}; may be repeated.", show_default="all", rich_help_panel=WHAT),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Most steps of a block.", show_default="60; quick: 20", rich_help_panel=WHAT)
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Blocks of each strategy.", show_default="7; quick: 5", rich_help_panel=WHAT)
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="CSV of real arrivals, for the axes prefill and rounds.", rich_help_panel=WHAT)
    ] = None,
    read: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Measure nothing: show what --out wrote before.", rich_help_panel=OUT),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="All figures as JSON.", rich_help_panel=OUT)] = None,
    compare: Annotated[
        Path | None, typer.Option(metavar="OLD.json", help="Ratios, new over old.", rich_help_panel=OUT)
    ] = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="SVG figures.", rich_help_panel=OUT)] = None,
    as_json: given.AsJson = False,
) -> None:  # fmt: skip
    """Measure a step behind every strategy of fencing, interleaved in one run: A B C, A B C, ...

    A step is table writes on the schedule lane, a decoding forward, the barrier, and the result of the launch before. Every
    result is compared with the serial loop's. Shown are medians and quartiles over the blocks.
    """
    old = documents.read_document(compare) if compare is not None else None
    if out is not None:
        check_output("--out", out)
    if plots is not None:
        check_plots(plots)
    console, bars = screens(as_json)
    stopped: BaseException | None = None
    if read is not None:
        made = documents.read_document(read)
    else:
        effort = _effort(quick, steps, rounds)
        ways = {"tables": tables, "marker": marker, "ticket": ticket}
        plan = _plan(backend or [], device, quick, axis or [], forward or [], strategy or [], effort, trace, ways)
        made, stopped = _measure(plan, bars)
    _show(made, old, console)
    _write(made, out, plots, console)
    if as_json:
        print_json(plain(made))
    if isinstance(stopped, KeyboardInterrupt):
        raise Interrupted(f"{len(made.cases)} cases were measured before")
    if stopped is not None:
        raise stopped


def _measure(plan: BenchOptions, bars: Console) -> tuple[documents.Document, BaseException | None]:
    """The document, and what ended the run early: what was measured until then is kept."""
    found, stopped = Found(), None
    try:
        with metered(bars) as meter:
            run(plan, meter, found)
    except (Exception, KeyboardInterrupt) as early:
        stopped = early
    about = documents.environment(*_surroundings(plan))
    return documents.document(about, plan.effort, found), stopped


def _show(made: documents.Document, old: documents.Document | None, console: Console) -> None:
    print_results(console, made)
    if old is not None:
        print_changes(console, changes(old, made), differences(old, made), missing(old, made))


def _effort(quick: bool, steps: int | None, rounds: int | None) -> Effort:
    at_least("--steps", steps, LEAST_STEPS)
    at_least("--rounds", rounds, 1)
    base = QUICK if quick else Effort()
    return replace(base, steps=steps or base.steps, rounds=rounds or base.rounds)


def _plan(
    names: list[str], device: str, quick: bool, axes: list[str], forwards: list[str], strategies: list[str],
    effort: Effort, trace: Path | None, ways: Mapping[str, str | None],
) -> BenchOptions:  # fmt: skip
    """Everything that can be refused is refused here, before anything is compiled."""
    if device not in words.DEVICES:
        raise InputError(f"--device is '{device}'; choose one of: {', '.join(words.DEVICES)}")
    if quick and not forwards:
        forwards = [presets.usual(device)[0]]
    chosen_cases = cases(axes, forwards, device)
    engine_runs.check(axes, trace)
    opened: dict[str, Open] = {
        contender.target: partial(_open, contender, device) for contender in contenders(names, device, ways).values()
    }
    requests = 8 if quick else 24
    return BenchOptions(opened, device, chosen_cases, axes, chosen(strategies), effort, trace, requests)


def _open(contender: Contender, device: str, options: Mapping[str, str]) -> Backend:
    """The backend as it was asked for, with a strategy's own options over that."""
    return open_backend(contender.target, device, {**contender.options, **options})


def _surroundings(plan: BenchOptions) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The devices, and the variables in the environment that move races."""
    variables = {str(found["name"]): found["value"] for found in environment.survey() if found["value"] is not None}
    if plan.device == "cpu":
        return [], variables
    return survey.other_devices(), variables


def _write(made: documents.Document, out: Path | None, plots: Path | None, console: Console) -> None:
    try:
        if out is not None:
            write_output(out, json.dumps(plain(made), indent=1) + "\n", "--out")
            say(console, f"Written: {out}")
        for path in draw(made.cases, made.environment, plots) if plots is not None else ():
            say(console, f"Written: {path}")
    except OSError as cause:
        raise CheckFailed(f"'{cause.filename}' cannot be written ({cause.strerror})") from cause
