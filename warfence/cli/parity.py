"""`warfence parity`: do all backends release the scheduler's write at the same read boundary? Measured, cell by cell."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from warfence import __version__
from warfence.cli import options as given
from warfence.cli import packages, survey
from warfence.cli.contenders import contenders, missing
from warfence.cli.exits import CheckFailed
from warfence.cli.meter import metered
from warfence.cli.output import print_json, say, screens
from warfence.cli.parity_view import print_report, summary
from warfence.cli.trace import write_timelines
from warfence.core.attention import attention_names
from warfence.core.errors import WarfenceError
from warfence.host.files import check_output, write_output
from warfence.parity.cells import BATCHES, Cell, matrix, mode_cases
from warfence.parity.junit import junit
from warfence.parity.report import Report
from warfence.parity.selection import choose, read_selection
from warfence.parity.small import small_model
from warfence.parity.suite import SuiteOptions, run_suite
from warfence.show.report.contents import Contents
from warfence.show.report.page import page
from warfence.show.timeline.trial import first_fine, trace_trial

WHAT, OUT = "What is run", "What is written"


def parity(
    backend: Annotated[list[str] | None, given.several_backends(panel=WHAT)] = None,
    device: Annotated[str, given.every_device(WHAT)] = "cpu",
    tables: Annotated[str | None, given.way("tables", WHAT)] = None,
    marker: Annotated[str | None, given.way("marker", WHAT)] = None,
    ticket: Annotated[str | None, given.way("ticket", WHAT)] = None,
    mode: Annotated[list[str] | None, given.several_modes(WHAT)] = None,
    attention: Annotated[list[str] | None, given.several_attentions(WHAT)] = None,
    laws: Annotated[bool, typer.Option(help="Hold each backend to the laws, too.", rich_help_panel=WHAT)] = True,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="See that each law catches its mutant.", rich_help_panel=WHAT)
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="One batch size: half the cells.", rich_help_panel=WHAT)] = False,
    skips_file: Annotated[
        Path | None,
        typer.Option(help="Cells and laws not to run: an id a line, and # why.", rich_help_panel=WHAT),
    ] = None,
    xfails_file: Annotated[
        Path | None,
        typer.Option(help="Cells and laws that are to fail: an id a line, and # why.", rich_help_panel=WHAT),
    ] = None,
    as_json: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE|-", help="The report as JSON; - prints it.", rich_help_panel=OUT),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JUnit XML, for CI.", rich_help_panel=OUT)
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="One page for people.", rich_help_panel=OUT)
    ] = None,
    timeline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A trial of the first fine cell on each backend, as Trace Event JSON.", rich_help_panel=OUT
        ),
    ] = None,
) -> None:  # fmt: skip
    """Measure where each backend lets a table write land, cell by cell, and compare; then hold each to the laws.

    Exits with 0 when all is as the rules say and equal, with 1 when a cell, a law or a mutant is not.
    """
    outputs = {"--json": None if as_json in (None, "-") else Path(str(as_json)), "--junit": junit, "--html": html}
    for option, path in (*outputs.items(), ("--timeline", timeline)):
        check_output(option, path)
    cells = _cells(mode or [], attention or [], quick)
    shown = first_fine(cells) if timeline is not None else None
    selection = read_selection(skips_file, xfails_file)
    plan = SuiteOptions(
        contenders(backend or [], device, {"tables": tables, "marker": marker, "ticket": ticket}),
        cells,
        selection,
        laws,
        mutants,
    )
    console, bars = screens(as_json == "-")
    for name, remedy in missing(backend or []).items():
        say(console, f"{name} is not installed here and is left out: {remedy}")
    with metered(bars) as meter:
        report = run_suite(plan, meter)
    report.missing, report.versions = missing(backend or []), _versions()
    report.devices = _devices({str(about["device"]) for about in report.backends.values()})
    print_report(console, report)
    for option, write in (("--json", _json), ("--junit", _junit), ("--html", _html)):
        path = outputs[option]
        if path is not None:
            _write(option, path, report, write)
            say(console, f"Written: {path}")
    if timeline is not None and shown is not None:
        _write_trials(console, timeline, plan, shown)
    if as_json == "-":
        print_json(report.to_json())
    if not report.ok:
        raise CheckFailed(summary(report))


def _cells(modes: list[str], attentions: list[str], quick: bool) -> list[Any]:
    """The cells of these modes (a forward mode stands for all of its cases) and attention backends."""
    known = dict.fromkeys([*(case.mode.value for case in mode_cases()), *(case.name for case in mode_cases())])
    chosen = matrix(choose("mode", modes, known), choose("attention backend", attentions, attention_names()))
    return [cell for cell in chosen if not quick or cell.batch == BATCHES[0]]


def _write(option: str, path: Path, report: Report, write: Callable[[Report], str | bytes]) -> None:
    write_output(path, write(report), option)


def _write_trials(console: Console, path: Path, plan: SuiteOptions, cell: Cell) -> None:
    """One trial of the cell on each backend. A backend that cannot tell its times, or fails, is left out and said so."""
    made, small = [], small_model()
    for name, contender in plan.contenders.items():
        try:
            made.append(trace_trial(contender.make(), small, cell))
        except WarfenceError as lacking:
            say(console, f"No timeline of {name}: {lacking}")
    write_timelines("--timeline", path, *made)
    say(console, f"Written: {path} (open it in https://ui.perfetto.dev or chrome://tracing)")


def _json(report: Report) -> str:
    return json.dumps(report.to_json(), indent=2) + "\n"


def _junit(report: Report) -> bytes:
    made = BytesIO()
    junit(report).write(made, encoding="utf-8", xml_declaration=True)
    return made.getvalue()


def _html(report: Report) -> str:
    return page(Contents(report))


def _versions() -> dict[str, str]:
    found = {p.name: p.version for p in packages.survey() if p.version and p.extra not in packages.TOOLS}
    return {"warfence": __version__, "python": platform.python_version(), **found}


def _devices(names: set[str]) -> list[dict[str, Any]]:
    """The CPU, and what the frameworks say of any other device that the run was on."""
    host = {"framework": "host", "platform": "cpu", "name": f"{platform.machine()}, {os.cpu_count()} cores"}
    if names <= {"cpu", "None"}:
        return [host]
    return [host, *survey.other_devices()]
