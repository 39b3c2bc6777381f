"""What stands in a square of the matrix, and behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.show.report.madeup import entry, made_up
from warfence.core.errors import InputError
from warfence.parity.cells import matrix
from warfence.parity.report import Report
from warfence.serve.model.config import ModelConfig
from warfence.show.report.matrix import Row, Square, rows


@pytest.fixture(scope="module")
def found(report: Report) -> dict[tuple[str, str], Row]:
    return {(row.mode, row.attention): row for row in rows(report.cells)}


def square(row: Row, at: int) -> Square:
    chosen = row.squares[at]
    assert chosen is not None
    return chosen


def test_a_line_says_where_a_write_lands_seen_from_the_boundary(found: dict[tuple[str, str], Row]) -> None:
    row = found["decode", "captured"]
    assert row.boundary == "swa_translate"
    lines = [[(line.backend, line.place, line.text) for line in square(row, at).lines] for at in range(5)]
    assert lines[0] == [("torch", "at", "swa_translate"), ("jax", "early", "page_table / swa_translate")]
    assert lines[1] == [("torch", "later", "sample"), ("jax", "later", "sample")]
    assert lines[2] == [("torch", "later", "end"), ("jax", "later", "end")]
    assert lines[3] == [("torch", "nothing", ""), ("jax", "at", "swa_translate")]


def test_a_square_that_is_wrong_says_what(found: dict[tuple[str, str], Row]) -> None:
    wrong = square(found["decode", "captured"], 0)
    assert (wrong.bad, wrong.verdict) == (True, "UNSOUND, no parity")
    failed = square(found["decode", "live"], 0)
    assert (failed.bad, failed.verdict) == (True, "nothing measured on torch")
    assert failed.lines[0].text == "error / swa_translate.2"
    right = square(found["decode", "captured"], 1)
    assert (right.bad, right.verdict) == (False, "as expected")


def test_cells_that_are_alike_are_told_once(found: dict[tuple[str, str], Row]) -> None:
    row = found["decode", "captured"]
    assert [d.cells for d in square(row, 0).details] == ["batch 1, with marker", "batch 3, with marker"]
    assert [d.cells for d in square(row, 1).details] == ["batch 1 and 3, without marker"]
    coarse = [d.cells for d in square(found["idle", "captured"], 2).details]
    assert coarse == ["batch 1, with marker and without marker"]


def test_a_detail_has_the_stages_in_order_with_all_that_happens(found: dict[tuple[str, str], Row]) -> None:
    detail = square(found["decode", "captured"], 0).details[0]
    assert (detail.rule, detail.entry.result.policy) == ("declared-in-graph", "in_graph")
    names = [position.name for position in detail.positions]
    assert names.index("stage_inputs") < names.index("page_table") < names.index("swa_translate") < names.index("relay")
    at = {position.name: position for position in detail.positions}
    assert at["swa_translate"].boundary
    assert at["swa_translate"].marker
    assert at["swa_translate"].events == ["torch: the barrier opens, the write lands"]
    assert at["page_table"].events == ["jax: the barrier opens, the write lands"]
    assert detail.readings["jax"] == "the barrier opens and the write lands behind page_table"
    hold = square(found["decode", "captured"], 3).details[0]
    assert {p.name: p.events for p in hold.positions if p.events} == {"swa_translate": ["jax: the write lands"]}
    assert hold.readings["torch"] == "not measured"


def test_a_combination_that_was_not_run_has_no_square(config: ModelConfig) -> None:
    cells = [cell for cell in matrix(("decode",), ("live",)) if cell.fence == "fine" and cell.marker]
    (row,) = rows(made_up(cells, config).cells)
    assert [one is not None for one in row.squares] == [True, False, False, False, False]


def test_a_stage_of_another_version_is_refused(config: ModelConfig) -> None:
    made = entry(next(matrix()), config)
    with pytest.raises(
        InputError, match=r"names the stage 'elsewhere', and the program of this version .* measure again"
    ):
        list(rows([replace(made, result=replace(made.result, boundary="elsewhere"))]))
