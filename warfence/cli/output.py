"""How commands print: a table for people, JSON for programs. Results go to stdout, complaints to stderr."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


def print_json(document: Any) -> None:
    """One JSON document on stdout, keys in the order they were given."""
    typer.echo(json.dumps(document, indent=2))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """One table on stdout; an empty one says so. Cell text is shown as it is, never read as markup."""
    console = Console(highlight=False, markup=False)
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")  # never an ellipsis: names are for copying
    for row in rows:
        table.add_row(*row)
    console.print(table if table.row_count else f"{title}: none")
