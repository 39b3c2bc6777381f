"""`warfence serve --watch LOG --timeline FILE`: the same run on an observed backend; either of the two, or both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from warfence.cli.options import HOW
from warfence.cli.output import say
from warfence.cli.trace import write_timelines
from warfence.core.backend import Backend
from warfence.host.files import check_output
from warfence.races.check.findings import check
from warfence.races.check.log_file import LogWriter, read_log
from warfence.serve.jobs.job import Job
from warfence.serve.jobs.session import Session, Watcher
from warfence.serve.jobs.session import session as plain
from warfence.show.observe import EventLog, Observed, Observer, unseen
from warfence.show.timeline.run import traced

Watch = Annotated[
    Path | None,
    typer.Option(help="Log all that passes the backend's interface, and check it afterwards.", rich_help_panel=HOW),
]


TimelineFile = Annotated[
    Path | None,
    typer.Option(
        "--timeline", help="Write what ran when as Trace Event JSON (ui.perfetto.dev, chrome://tracing).",
        rich_help_panel=HOW,
    ),
]  # fmt: skip


def check_files(log: Path | None, timeline: Path | None) -> None:
    """InputError when no file can be written there. Before anything else is done."""
    check_output("--watch", log)
    check_output("--timeline", timeline)


@contextmanager
def session(job: Job, watcher: Watcher, log: Path | None, timeline: Path | None = None) -> Iterator[Session]:
    """`warfence.serve.jobs.session.session`, observed as far as something is wanted.

    The log is whole afterwards; a timeline is written at the end of what was served without a failure.
    """
    with ExitStack() as stack:

        def observers(inner: Backend) -> list[Observer]:
            if log is None:
                return []
            return [EventLog(stack.enter_context(LogWriter(log, unseen(inner))).append)]

        if timeline is not None:
            run = stack.enter_context(traced(job, watcher, job.options.engine(), observers))
            yield run.session
            write_timelines("--timeline", timeline, run.timeline())
        elif log is not None:
            yield stack.enter_context(plain(job, watcher, lambda inner: Observed(inner, *observers(inner))))
        else:
            yield stack.enter_context(plain(job, watcher))


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
