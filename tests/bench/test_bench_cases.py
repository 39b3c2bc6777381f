"""Axes move one size away from a point; each case is measured once."""

from __future__ import annotations

import msgspec
import pytest

from warfence.bench.cases import Case, cases
from warfence.bench.presets import usual
from warfence.core.errors import InputError
from warfence.host.documents import plain


def test_without_an_axis_the_point_itself() -> None:
    assert cases([], ["tiny"], "cpu") == [Case("tiny")]
    assert [case.forward for case in cases([], [], "cuda")] == list(usual("cuda"))


def test_an_axis_moves_one_size() -> None:
    moved = cases(["table_rows"], ["tiny"], "cpu")
    assert [case.table_rows for case in moved] == [1_000, 10_000, 100_000, 1_000_000]
    assert {(case.writes, case.sync, case.batch) for case in moved} == {(10, False, 8)}


def test_two_axes_share_their_point_and_sizes_stand_together() -> None:
    found = cases(["writes", "batch", "sync"], ["tiny"], "cpu")
    assert len(found) == len(set(found)) == 4 + 3 + 1
    shapes = [case.shape for case in found]
    assert shapes == sorted(shapes, key=shapes.index)
    assert shapes[:5] == [("tiny", 8)] * 5


def test_axes_that_serve_are_not_made_of_cases() -> None:
    assert cases(["prefill", "spec"], [], "cpu") == []


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="unknown axis 'width'; choose one of: forward, writes"):
        cases(["width"], [], "cpu")
    with pytest.raises(InputError, match="unknown forward 'wide'"):
        cases(["writes"], ["wide"], "cpu")


def test_a_case_survives_json() -> None:
    case = Case("tiny", writes=30, sync=True)
    assert msgspec.convert(plain(case), Case) == case
    assert case.name == "tiny, 30 writes, sync, batch 8, 1000 rows"
