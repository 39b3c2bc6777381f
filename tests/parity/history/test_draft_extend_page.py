"""The table of docs/draft-extend.md, measured again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from warfence.parity.cells import FINE, MODES, Cell
from warfence.parity.history import PROPOSALS, RULE_SETS
from warfence.parity.matrix import run_cell
from warfence.parity.rig import Rig
from warfence.parity.small import small_model
from warfence.parity.strict.backend import StrictBackend

PAGE = Path(__file__).parents[3] / "docs" / "draft-extend.md"
LINES = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in PAGE.read_text("utf-8").splitlines()]
ROWS = [row for row in LINES if len(row) == 6 and row[3] in ("yes", "no")]
(DRAFT,) = [mode for mode in MODES if mode.name == "draft_extend+eagle"]


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    backend = StrictBackend()
    yield Rig(backend, small_model())
    backend.close()


def test_every_position_has_rows() -> None:
    assert [row[1] for row in ROWS] == ["draft-before"] * 2 + ["36335"] * 2 + ["37988"] * 2 + ["warfence"] * 3


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row[1:4]))
def test_a_row_of_the_page_is_what_is_measured(rig: Rig, row: list[str]) -> None:
    _, rules, attention, marker, opens, verdict = row
    cell = Cell(DRAFT, attention, marker == "yes", FINE, 1)
    result = run_cell({"strict": rig}, cell, rules=(PROPOSALS | RULE_SETS)[rules])
    release = result.release["strict"]
    assert release is not None
    assert release.opened == opens
    assert verdict == ("UNSOUND" if not result.sound else "sound, precise" if result.precise else "sound, late")
