"""What `warfence parity` shows: one table, what failed in full, and a sentence each on the rest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from warfence.cli.output import prose, say
from warfence.parity.overview import COLUMNS, LEGEND, Column, Row, rows
from warfence.parity.report import CellEntry, Entry, LawEntry, MutantEntry, Report, notes, problem

NARROWEST = 7  # of a column
SHOWN = 12  # failures in full; all of them are in the files


def print_report(console: Console, report: Report) -> None:
    """All of it, for people."""
    for warning in report.warnings:
        say(console, f"warning: {warning}")
    if report.cells:
        _print_matrix(console, report)
    failures = report.failures()
    if failures:
        _print_failures(console, failures)
    _print_laws(console, report.laws)
    _print_mutants(console, report.mutants)
    if report.ok:
        say(console, summary(report))


def _print_failures(console: Console, failures: Sequence[Entry]) -> None:
    """Each in full; where many say the same, one of them, and the names of the others."""
    groups: dict[object, list[Entry]] = {}
    for entry in failures:
        groups.setdefault(_cause(entry), []).append(entry)
    say(console, "What failed:")
    for alike in list(groups.values())[:SHOWN]:
        first, *others = problem(alike[0])
        say(console, f"✗ {first}")
        if len(alike) > 1:
            others.append(f"The same: {'; '.join(_name(entry) for entry in alike[1:])}")
        for line in others:
            if console.is_terminal:  # the rest of a wrapped line keeps its place
                console.print(Padding(Text(line), (0, 0, 0, 4)))
            else:
                say(console, f"    {line}")
    if len(groups) > SHOWN:
        say(console, f"... and {len(groups) - SHOWN} more: --json FILE and --html FILE have all of them")
    say(console)


def _cause(entry: Entry) -> object:
    if isinstance(entry, CellEntry) and entry.result.failed:
        return tuple((name, entry.result.notes[name]) for name in entry.result.failed)
    if isinstance(entry, LawEntry) and entry.message:
        return (entry.backend, entry.message)
    return id(entry)


def _name(entry: Entry) -> str:
    return entry.result.cell.name if isinstance(entry, CellEntry) else entry.id


def summary(report: Report) -> str:
    """The verdict in a sentence."""
    if report.ok:
        names = " and ".join(report.backends)
        passed = [entry.result for entry in report.cells if entry.status == "passed"]
        compared = sum(len(result.compared) > 1 for result in passed)
        alone = len(passed) - compared
        parts = [f"parity: {names} release at the same stage in all {compared} cells compared"] if compared else []
        if alone:
            which = "more, of one backend alone or not comparable," if compared else f"cells on {names}"
            parts.append(f"{alone} {which} are as the rules say")
        return "; ".join([*(parts or ["no cell was measured, and nothing failed"]), f"{report.seconds:.0f} s"])
    bad = report.failures()
    laws = sum(isinstance(entry, LawEntry) for entry in bad)
    mutants = sum(isinstance(entry, MutantEntry) for entry in bad)
    kinds = (("cell", len(bad) - laws - mutants), ("law", laws), ("mutant", mutants))
    failed = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in kinds if n)
    unmeasured = [f"nothing was measured on {name}" for name in report.unmeasured()]
    return "; ".join([*([f"no parity: {failed} failed"] if failed else []), *unmeasured])


def _print_matrix(console: Console, report: Report) -> None:
    devices = ", ".join(f"{name} ({about['device'] or 'does not start'})" for name, about in report.backends.items())
    say(console, f"Where a table write lands, on {devices}: {len(report.cells)} cells")
    titles = [Text(t, "bold") for t in ("\n\n  attention", "\nread\nboundary", *map(_heading, COLUMNS), "\n\ncells")]
    modes: dict[str, list[list[Text]]] = {"": [titles]}
    for row in rows(report.cells):
        modes.setdefault(row.mode, []).append(_line(row))
    widths = [max(map(_width, column)) for column in zip(*chain(*modes.values()), strict=True)]
    if console.is_terminal:
        widths = _fitted(widths, console.width - 2 * len(widths))
    else:
        console.width = max(console.width, sum(widths) + 2 * len(widths))  # a pipe has no width
    for mode, lines in modes.items():
        if mode:
            console.print(Text(mode, "bold"))
        grid = Table.grid(padding=(0, 2, 0, 0))
        for width in widths:
            grid.add_column(width=width, overflow="fold")
        for line in lines:
            grid.add_row(*line)
        console.print(grid)
    say(console)
    prose(console, LEGEND)
    for (name, note), count in notes(report.cells).items():
        say(console, f"{name}, in {count} cell{'s' if count > 1 else ''}: {note}")
    say(console)


def _heading(column: Column) -> str:
    """Three short lines: columns are narrow, so that the table fits 80 characters."""
    if column.marker is None:
        return f"\n\n{column.title}"
    return column.title.replace(" with ", "\nwith\n").replace(" no marker", "\nno\nmarker")


def _line(row: Row) -> list[Text]:
    squares = [Text(square.text.replace(" / ", "\n"), "red" if square.bad else "") for square in row.squares]
    return [Text(f"  {row.attention}"), Text(row.boundary), *squares, Text(row.verdict, "red" if row.bad else "green")]


def _fitted(widths: Sequence[int], room: int) -> list[int]:
    """Narrower release columns, the widest first, until all fit; what is longer is then folded."""
    first, boundary, *squares, cells = widths
    while first + boundary + sum(squares) + cells > room and max(squares) > NARROWEST:
        squares[squares.index(max(squares))] -= 1
    return [first, boundary, *squares, cells]


def _width(text: Text) -> int:
    return max(len(line) for line in text.plain.split("\n"))


def _print_laws(console: Console, laws: Sequence[LawEntry]) -> None:
    for name in dict.fromkeys(law.backend for law in laws):
        mine = [law for law in laws if law.backend == name]
        held = sum(law.outcome == "held" for law in mine)
        others = [f"{law.id} {_outcome(law)}" for law in mine if law.outcome != "held"]
        say(console, "; ".join([f"Laws on {name}: {held} of {len(mine)} held", *others]))


def _outcome(law: LawEntry) -> str:
    if law.outcome == "broken":  # why was said in full, or is expected
        return f"broken, as expected ({law.reason})" if law.status == "xfailed" else "broken"
    return f"{law.outcome} ({law.reason or law.message})"


def _print_mutants(console: Console, mutants: Sequence[MutantEntry]) -> None:
    for name in dict.fromkeys(mutant.backend for mutant in mutants):
        mine = [mutant for mutant in mutants if mutant.backend == name]
        faults = [mutant for mutant in mine if not mutant.right]
        caught = sum(mutant.right_law for mutant in faults)
        say(console, f"Mutants on {name}: {caught} of {len(faults)} caught by the law that forbids them")
        if right := [mutant for mutant in mine if mutant.right]:
            held = sum(not mutant.caught for mutant in right)
            say(console, f"  {held} of {len(right)} that are faults with events are right with tickets by value")
