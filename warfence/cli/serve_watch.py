"""`warfence serve --watch LOG`: the same run on a recorded backend, and in two lines what the check finds in its log."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from warfence.cli.options import HOW
from warfence.cli.output import say
from warfence.cli.serve_timeline import timed
from warfence.core.backend import Backend
from warfence.core.errors import InputError
from warfence.races.check.findings import check
from warfence.races.check.log_file import LogWriter, read_log
from warfence.races.check.recording import Recorded, unseen
from warfence.serve.jobs.job import Job
from warfence.serve.jobs.session import Session, Watcher
from warfence.serve.jobs.session import session as plain

Watch = Annotated[
    Path | None,
    typer.Option(help="Log all that passes the backend's interface, and check it afterwards.", rich_help_panel=HOW),
]


def check_watch(log: Path | None) -> None:
    """InputError when no log can be written there. Before anything else is done."""
    if log is not None and (log.is_dir() or not os.access(log.parent, os.W_OK)):
        raise InputError(f"--watch '{log}': no file can be written there; give one in a folder that is writable")


@contextmanager
def session(job: Job, watcher: Watcher, log: Path | None, timeline: Path | None = None) -> Iterator[Session]:
    """`warfence.serve.jobs.session.session`, on a recorded backend where a log is wanted. The log is whole afterwards.

    timeline: likewise, on a backend that notes its times.
    """
    with ExitStack() as stack:
        if timeline is not None:
            warm = stack.enter_context(timed(job, watcher, timeline))
        elif log is not None:

            def recorded(inner: Backend) -> Backend:
                return Recorded(inner, stack.enter_context(LogWriter(log, unseen(inner))).append)

            warm = stack.enter_context(plain(job, watcher, recorded))
        else:
            warm = stack.enter_context(plain(job, watcher))
        yield warm


def judged(console: Console, log: Path) -> dict[str, Any]:
    """Check the log, say what was found, and return it: how many instances of each kind, and what over-fencing costs."""
    report = check(read_log(log))
    kinds: Counter[str] = Counter({"race": 0})
    for finding in report.findings:
        kinds[finding.kind] += finding.count
    cost = sum(finding.operations for finding in report.findings)
    found = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
    say(console, f"Watched {report.events} events: {found}" + (f" ({cost} operations in vain)." if cost else "."))
    say(console, f"All of it, each with its place and the edge that is missing or too strong: warfence check {log}")
    return {"log": str(log), "events": report.events, "found": dict(kinds), "operations_in_vain": cost}
