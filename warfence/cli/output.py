"""How commands print: a table for people, JSON for programs. Results go to stdout, complaints to stderr."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text


def screen(*, quiet: bool = False, stderr: bool = False) -> Console:
    """A console that prints text as it is: no markup, no emoji, no colours for what looks like a number."""
    return Console(quiet=quiet, stderr=stderr, highlight=False, markup=False, emoji=False)


def screens(as_json: bool) -> tuple[Console, Console]:
    """(for texts, for progress). With --json stdout is the document's alone: a bar goes to a terminal on stderr."""
    texts = screen(quiet=as_json)
    if not as_json:
        return texts, texts
    errors = screen(stderr=True)
    return texts, errors if errors.is_terminal else texts


def say(console: Console, line: str = "") -> None:
    """One line of data, however long: only a terminal wraps it, a pipe has no width."""
    console.print(Text(line), soft_wrap=not console.is_terminal)


def prose(console: Console, text: str) -> None:
    """One paragraph for people, wrapped to the console's width."""
    console.print(Text(" ".join(text.split())))


def print_json(document: Any) -> None:
    """One JSON document on stdout, keys in the order they were given."""
    typer.echo(json.dumps(document, indent=2))


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], console: Console | None = None
) -> None:
    """One table on the console (None: stdout); an empty one says so. Cell text is never read as markup."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")  # never an ellipsis: names are for copying
    for row in rows:
        table.add_row(*row)
    (console or screen()).print(table if table.row_count else f"{title}: none")
