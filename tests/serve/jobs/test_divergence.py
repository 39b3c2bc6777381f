"""Comparing two runs: the first difference, and what is only a near tie."""

from __future__ import annotations

import math

import pytest

from warfence.serve.jobs.divergence import Divergence, differences, split
from warfence.serve.requests import Request
from warfence.serve.sampling import NEAR_TIE


def request(id: int, output: list[int], margins: list[float] | None = None) -> Request:
    made = Request(id, (1,), 9)
    made.output, made.margins = output, margins or [1.0] * len(output)
    return made


def test_equal_runs_have_none_in_whatever_order() -> None:
    assert differences([request(1, [4]), request(0, [5, 6])], [request(0, [5, 6]), request(1, [4])]) == []


def test_the_first_position_counts_and_the_margin_is_that_of_the_expected_run() -> None:
    seen, expected = request(3, [5, 7, 8], [9.0, 9.0, 9.0]), request(3, [5, 6, 1], [1.0, 0.5, 1.0])
    assert differences([seen], [expected]) == [Divergence(3, 1, expected=6, seen=7, margin=0.5)]


@pytest.mark.parametrize(("seen", "expected", "tokens"), [([5], [5, 6], (6, None)), ([5, 6], [5], (None, 6))])
def test_an_output_that_ended_early_differs_where_it_ended(
    seen: list[int], expected: list[int], tokens: tuple[int | None, int | None]
) -> None:
    (found,) = differences([request(0, seen)], [request(0, expected)])
    assert (found.position, found.expected, found.seen) == (1, *tokens)
    assert not found.near_tie
    assert math.isnan(found.margin) == (tokens[0] is None)
    assert found.to_json()["margin"] == (None if tokens[0] is None else 1.0)


def test_a_small_margin_is_a_near_tie() -> None:
    tie, real = Divergence(0, 0, 1, 2, NEAR_TIE / 2), Divergence(1, 0, 1, 2, NEAR_TIE)
    assert split([tie, real]) == ([real], [tie])
