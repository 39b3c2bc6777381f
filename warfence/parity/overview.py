"""The matrix as one small table: a row for each mode and attention, a column for each fence; batches are folded in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from warfence.parity.cells import COARSE, DONATION, FENCES, FINE, Cell
from warfence.parity.report import BAD, CellEntry, reading

AT_BOUNDARY = "="
LEGEND = (
    "Each release point was measured: with the forward held right after that stage a table write lands, one stage earlier"
    f" it does not. '{AT_BOUNDARY}' is the read boundary itself, 'end' the end of the whole forward, '-' not measured."
    " 'fine' waits for the read-done ticket (with and without a marker in the captured forward), 'coarse' for the forward;"
    " with no fence only a donation can hold the write."
)


@dataclass(frozen=True, slots=True)
class Column:
    """Which cells a column shows; `marker` None: both kinds."""

    title: str
    fence: str
    marker: bool | None

    def shows(self, cell: Cell) -> bool:
        return cell.fence == self.fence and self.marker in (None, cell.marker)


COLUMNS = (
    Column("fine with marker", FINE, True),
    Column("fine no marker", FINE, False),
    Column("coarse", COARSE, None),
    Column("no fence with marker", DONATION, True),
    Column("no fence no marker", DONATION, False),
)
assert {column.fence for column in COLUMNS} == set(FENCES)


@dataclass(slots=True)
class Square:
    """What one row shows in one column: the releases seen (more than one where something is wrong), and if all is well."""

    texts: list[str] = field(default_factory=list)
    bad: bool = False

    @property
    def text(self) -> str:
        return " / ".join(self.texts) or "-"


@dataclass(slots=True)
class Row:
    """One mode and attention backend."""

    mode: str
    attention: str
    boundary: str
    squares: list[Square]
    passed: int = 0
    bad: int = 0
    skipped: int = 0
    xfailed: int = 0

    @property
    def verdict(self) -> str:
        others = [f"{n} {word}" for n, word in ((self.skipped, "skipped"), (self.xfailed, "xfailed")) if n]
        mark = f"✗ {self.bad} of {self.bad + self.passed}" if self.bad else f"✓ {self.passed}"
        return ", ".join([*([mark] if self.bad + self.passed else []), *others]) or "-"


def rows(entries: Iterable[CellEntry]) -> Iterator[Row]:
    """One row for each mode and attention, in the order of the cells."""
    grouped: dict[tuple[str, str], list[CellEntry]] = {}
    for entry in entries:
        cell = entry.result.cell
        grouped.setdefault((cell.mode.name, cell.attention), []).append(entry)
    for (mode, attention), group in grouped.items():
        squares = [_square([e for e in group if column.shows(e.result.cell)]) for column in COLUMNS]
        row = Row(mode, attention, group[0].result.boundary, squares)
        for entry in group:
            row.bad += entry.status in BAD
            row.passed += entry.status == "passed"
            row.skipped += entry.status == "skipped"
            row.xfailed += entry.status == "xfailed"
        yield row


def _square(entries: list[CellEntry]) -> Square:
    """What all these cells and all backends agree on, once; else each backend's own, once."""
    seen: dict[str, dict[str, None]] = {}
    for entry in entries:
        result = entry.result
        for name, release in result.release.items():
            if release is not None:
                text = reading(release, result.cell.fence != DONATION)
                seen.setdefault(AT_BOUNDARY if text == result.boundary else text, {})[name] = None
            elif name in result.failed:
                seen.setdefault("error", {})[name] = None
    named = len(seen) > 1
    texts = [f"{', '.join(names)}: {text}" if named else text for text, names in seen.items()]
    return Square(texts, any(entry.status in BAD for entry in entries))
