"""Where the names of slices go that are too short to hold them: above, in rows, so that none lies over another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

CHARACTER = 6.3  # width of a character of a label, in pixels; a little more than the usual sans serif needs
GAP = 6.0


@dataclass(frozen=True, slots=True)
class Label:
    """A text that begins at x, in row 0 (nearest to the slices), 1, ...; a thin line leads down from it at x."""

    x: float
    row: int
    text: str

    @property
    def end(self) -> float:
        return self.x + width(self.text)


def width(text: str) -> float:
    """About how wide a label is, in pixels."""
    return CHARACTER * len(text)


def place(wanted: Iterable[tuple[float, str]], rows: int, right: float) -> tuple[list[Label], int]:
    """(labels, how many found no room), the first ones first. No label lies over another, nor over the line of one."""
    placed: list[Label] = []
    left_out = 0
    for x, text in wanted:
        fits = (row for row in range(rows) if _free(placed, Label(x, row, text), right))
        row = next(fits, None)
        if row is None:
            left_out += 1
        else:
            placed.append(Label(x, row, text))
    return placed, left_out


def _free(placed: list[Label], new: Label, right: float) -> bool:
    if new.end > right:
        return False
    for old in placed:
        if old.row == new.row and old.x < new.end + GAP and new.x < old.end + GAP:
            return False
        lower, upper = (old, new) if old.row < new.row else (new, old)
        if lower.row < upper.row and lower.x - 1 < upper.x < lower.end + GAP / 2:
            return False
    return True
