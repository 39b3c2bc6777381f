"""`warfence serve --timeline FILE`: the same run on a backend that notes its times, and a timeline of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from warfence.cli.options import HOW
from warfence.cli.trace import check_file, write_timelines
from warfence.core.errors import InputError
from warfence.serve.jobs.job import Job
from warfence.serve.jobs.session import Session, Watcher
from warfence.show.timeline.run import traced

TimelineFile = Annotated[
    Path | None,
    typer.Option(
        "--timeline", help="Write what ran when as Trace Event JSON (ui.perfetto.dev, chrome://tracing).",
        rich_help_panel=HOW,
    ),
]  # fmt: skip


def check_timeline(timeline: Path | None, log: Path | None) -> None:
    """InputError when no file can be written there, or when the run is watched as well. Before anything else is done."""
    check_file("--timeline", timeline)
    if timeline is not None and log is not None:
        raise InputError(
            "--timeline and --watch each put something of their own around the backend; give one of the two"
        )


@contextmanager
def timed(job: Job, watcher: Watcher, path: Path) -> Iterator[Session]:
    """`warfence.serve.jobs.session.session`, with a timeline written at the end of what was served without a failure."""
    with traced(job, watcher, job.options.engine()) as run:
        yield run.session
        write_timelines("--timeline", path, run.timeline())
