"""How far a command has come: a bar on a terminal, else a line for each part as it begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from warfence.cli.output import say
from warfence.host.meter import Meter


class _Lines(Meter):
    """For logs."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def phase(self, what: str, total: int) -> None:
        say(self._console, f"{what} ..." if total == 1 else f"{what}: {total} ...")


class _Bar(Meter):
    """One bar, for the part that runs now."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", failed="")
        self._bad = 0

    def phase(self, what: str, total: int) -> None:
        self._progress.reset(self._task, description=what, total=total)

    def step(self, bad: bool = False) -> None:
        self._bad += bad
        self._progress.update(self._task, advance=1, failed=f"{self._bad} failed" if self._bad else "")


@contextmanager
def metered(console: Console) -> Iterator[Meter]:
    """The meter that fits the console."""
    if not console.is_terminal or console.quiet:
        yield _Lines(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[failed]}"), console=console, transient=True) as progress:
        yield _Bar(progress)
