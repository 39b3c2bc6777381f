"""`warfence check`: what no fence orders in an event log, wrong tickets, waits without end, fences that cost too much."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from warfence.cli import options as given
from warfence.cli.exits import DONE, FAILED
from warfence.cli.output import print_json, say, screen
from warfence.races.check.findings import check as check_log
from warfence.races.check.log_file import read_log
from warfence.races.check.told import told


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
        for line in told(report, str(log)):
            say(screen(), line)
    raise typer.Exit(FAILED if report.findings else DONE)
