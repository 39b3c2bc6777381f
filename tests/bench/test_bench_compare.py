"""Two documents: ratios where both have the case, and a word on what differs around them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warfence.bench.compare import changes, differences, missing
from warfence.bench.document import Document, document, environment
from warfence.bench.results import CaseResult
from warfence.bench.run import Found
from warfence.bench.spread import Spread

from .conftest import LITTLE

pytestmark = pytest.mark.slow  # a whole case is measured before the first


@pytest.fixture
def old(result: CaseResult) -> Document:
    return document(environment([], {}), LITTLE, Found([result]))


def with_coarse(made: Document, step: Spread) -> Document:
    """The document with another step time behind the coarse fence."""
    (case,) = made.cases
    strategies = {**case.strategies, "coarse": replace(case.strategies["coarse"], step_ms=step)}
    return replace(made, cases=[replace(case, strategies=strategies)])


def test_the_same_is_one_everywhere(old: Document) -> None:
    found = changes(old, old)
    assert {change.ratio for change in found} == {1.0}
    assert not any(change.apart for change in found)
    assert [c.of for c in found if c.figure == "step_ms"] == list(old.cases[0].strategies)
    assert differences(old, old) == missing(old, old) == []


def test_a_ratio_is_new_over_old_and_says_when_quartiles_are_apart(old: Document) -> None:
    new = with_coarse(old, Spread(30.0, 29.0, 31.0, ()))
    old = with_coarse(old, Spread(20.0, 19.0, 21.0, ()))
    changed = next(c for c in changes(old, new) if c.of == "coarse" and c.figure == "step_ms")
    assert changed.case == "strict on cpu, 1x32, 3 writes, batch 2, 8 rows"
    assert (changed.old, changed.new, changed.ratio, changed.apart) == (20.0, 30.0, 1.5, True)


def test_other_environments_and_absent_cases_are_said(old: Document) -> None:
    (case,) = old.cases
    other = replace(case, case=replace(case.case, batch=3))
    new = replace(old, environment=replace(old.environment, cpus=-1), cases=[other])
    assert differences(old, new) == [f"cpus: {old.environment.cpus} then, -1 now"]
    assert missing(old, new) == ["strict on cpu, 1x32, 3 writes, batch 2, 8 rows"]
    assert changes(old, new) == []
