"""`warfence check`: what no fence orders in an event log, wrong tickets, waits without end, fences that cost too much."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from warfence.cli import options as given
from warfence.cli.exits import DONE, FAILED
from warfence.cli.output import print_json, say, screen
from warfence.races.check.findings import Findings
from warfence.races.check.findings import check as check_log
from warfence.races.check.log_file import read_log


def check(
    log: Annotated[Path, typer.Argument(help="An event log: JSON lines, as a recorder of warfence wrote them.")],
    as_json: given.AsJson = False,
) -> None:
    """Find races, never-recorded waits, stale tickets and over-fencing in an event log, by happens-before.

    Exit status: 0 clean, or incomplete (the verdict says what was missed), 1 findings, 2 no readable log.
    """
    report = check_log(read_log(log))
    if as_json:
        print_json(report.document())
    else:
        print_findings(screen(), str(log), report)
    raise typer.Exit(FAILED if report.findings else DONE)


def print_findings(console: Console, log: str, report: Findings) -> None:
    """Every finding, then the verdict with what was missed, then what no check sees."""
    for number, finding in enumerate(report.findings, 1):
        times = f" ({finding.count} times, the first one here)" if finding.count > 1 else ""
        lines = " and ".join(map(str, finding.lines))
        say(console, f"{number}. {finding.kind}{times}: {finding.what}")
        say(console, f"   edge: {finding.missing}")
        say(console, f"   earliest: {finding.earliest}")
        if finding.operations:
            say(console, f"   cost: {finding.operations} operations waited for in vain, all times together")
        say(console, f"   event {lines} of the log")
        for where in filter(None, finding.where):
            say(console, f"   at {where}")
        say(console)
    found = f"{len(report.findings)} findings" if report.findings else report.verdict
    say(console, f"{log}: {report.events} events on {len(report.lanes)} lanes ({', '.join(report.lanes)}): {found}")
    for missed in report.missed:
        say(console, f"incomplete: {missed}")
    say(console, "What this check cannot see:")
    for limit in report.limits:
        say(console, f"- {limit}")
