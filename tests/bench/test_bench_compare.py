"""Two documents: ratios where both have the case, and a word on what differs around them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from warfence.bench.compare import changes, differences, missing
from warfence.bench.document import document, environment
from warfence.bench.results import CaseResult

from .conftest import LITTLE

pytestmark = pytest.mark.slow  # a whole case is measured before the first


@pytest.fixture
def old(result: CaseResult) -> dict[str, Any]:
    return copy.deepcopy(document(environment([], {}), LITTLE, [result], []))


def test_the_same_is_one_everywhere(old: dict[str, Any]) -> None:
    found = changes(old, old)
    assert {change.ratio for change in found} == {1.0}
    assert not any(change.apart for change in found)
    assert [c.of for c in found if c.figure == "step_ms"] == list(old["cases"][0]["strategies"])
    assert differences(old, old) == missing(old, old) == []


def test_a_ratio_is_new_over_old_and_says_when_quartiles_are_apart(old: dict[str, Any]) -> None:
    new = copy.deepcopy(old)
    new["cases"][0]["strategies"]["coarse"]["step_ms"] = {"median": 30.0, "low": 29.0, "high": 31.0, "values": []}
    old["cases"][0]["strategies"]["coarse"]["step_ms"] = {"median": 20.0, "low": 19.0, "high": 21.0, "values": []}
    changed = next(c for c in changes(old, new) if c.of == "coarse" and c.figure == "step_ms")
    assert changed.case == "strict on cpu, 1x32, 3 writes, batch 2, 8 rows"
    assert (changed.old, changed.new, changed.ratio, changed.apart) == (20.0, 30.0, 1.5, True)


def test_other_environments_and_absent_cases_are_said(old: dict[str, Any]) -> None:
    new = copy.deepcopy(old)
    new["environment"]["cpus"] = -1
    new["cases"][0]["case"]["batch"] = 3
    assert differences(old, new) == [f"cpus: {old['environment']['cpus']} then, -1 now"]
    assert missing(old, new) == ["strict on cpu, 1x32, 3 writes, batch 2, 8 rows"]
    assert changes(old, new) == []
