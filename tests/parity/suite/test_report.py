"""What a report says of its cells, laws and mutants, and when the whole is ok."""

from __future__ import annotations

from typing import Any

import pytest

from warfence.parity.cells import COARSE, DONATION, FINE, MODES, Cell
from warfence.parity.matrix import CellResult, blank, judge
from warfence.parity.overview import rows
from warfence.parity.probe import Release
from warfence.parity.report import (
    CellEntry,
    LawEntry,
    MutantEntry,
    Report,
    in_full,
    notes,
    problem,
    reading,
    status_of,
    verdicts,
)  # fmt: skip
from warfence.parity.rig import program_of
from warfence.parity.small import SmallModel, small_model

DECODE, EXTEND = MODES[0], MODES[1]
BACKENDS: dict[str, dict[str, Any]] = {name: {"device": "cpu", "capabilities": {}, "reasons": {}} for name in "ab"}


@pytest.fixture(scope="module")
def small() -> SmallModel:
    return small_model()


def cell(attention: str = "live", fence: str = FINE, *, marker: bool = True, batch: int = 1) -> Cell:
    return Cell(DECODE, attention, marker, fence, batch)


def measured(small: SmallModel, what: Cell, opened: str, landed: str, may_be_late: bool = False) -> CellResult:
    """Backend a released as the rules say, backend b as given."""
    result = blank(what, small.config)
    program, _ = program_of(what, small.config)
    for name, release in (("a", Release(result.expected, result.expected)), ("b", Release(opened, landed))):
        result.release[name] = release
        result.compared.append(name)
        judge(result, program, release, result.expected, may_be_late)
    result.parity = len(set(result.release.values())) == 1 or what.fence == DONATION or may_be_late
    return result


def entry(result: CellResult, status: str | None = None) -> CellEntry:
    return CellEntry(result, status or status_of(result.ok))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("opened", "landed", "sound", "precise", "words"),
    [
        ("swa_translate.2", "swa_translate.2", True, True, "as expected"),
        ("layer.1", "layer.1", False, False, "UNSOUND, no parity"),
        # The runtime held the write by itself; the barrier is wrong all the same.
        ("layer.1", "swa_translate.2", False, True, "UNSOUND, no parity"),
        ("swa_translate.2", "sample", True, False, "no parity, not where the rules put it"),
        ("end", "end", True, False, "no parity, not where the rules put it"),
    ],
)
def test_a_release_is_judged_against_boundary_and_rules(
    small: SmallModel, opened: str, landed: str, sound: bool, precise: bool, words: str
) -> None:
    result = measured(small, cell(), opened, landed)
    assert (result.boundary, result.policy, result.expected) == ("swa_translate.2", "in_graph", "swa_translate.2")
    assert (result.sound, result.precise) == (sound, precise)
    assert verdicts(result) == words


def test_what_says_that_it_cannot_be_precise_may_land_late_but_not_open_late(small: SmallModel) -> None:
    assert measured(small, cell(), "swa_translate.2", "end", may_be_late=True).ok
    assert not measured(small, cell(), "end", "end", may_be_late=True).ok
    assert not measured(small, cell(), "layer.1", "layer.1", may_be_late=True).ok


def test_without_a_fence_nothing_opens(small: SmallModel) -> None:
    result = measured(small, cell(fence=DONATION), "start", "swa_translate.2")
    assert result.ok
    assert reading(Release("start", "swa_translate.2"), fenced=False) == "swa_translate.2"
    assert reading(Release("start", "swa_translate.2"), fenced=True) == "opened start, landed swa_translate.2"
    assert reading(None, fenced=True) == "not measured"


def test_a_failure_claims_nothing(small: SmallModel) -> None:
    result = blank(cell(), small.config)
    result.fail("b", "launch 3, stage 'logits': ValueError: no")
    assert [result.sound, result.precise, result.parity, result.ok] == [False] * 4
    assert in_full(result) == [
        "decode / live / marker / fine / batch 1: nothing measured on b",
        "read boundary swa_translate.2, policy in_graph, expected release swa_translate.2",
        "b: not measured (launch 3, stage 'logits': ValueError: no)",
    ]


def test_expected_failures_are_strict(small: SmallModel) -> None:
    assert [status_of(ok, why) for ok in (True, False) for why in (None, "known")] == [
        "passed", "xpassed", "failed", "xfailed",
    ]  # fmt: skip
    assert status_of(True, "known", applies=False) == status_of(True, applies=False) == "not applicable"
    right = measured(small, cell(), "swa_translate.2", "swa_translate.2")
    report = Report(BACKENDS, [CellEntry(right, "xpassed", "a driver bug")])
    assert not report.ok
    assert problem(report.failures()[0]) == [
        "decode / live / marker / fine / batch 1: expected to fail (a driver bug), and passes: "
        "delete the line from the xfails file"
    ]


def test_laws_and_mutants_count(small: SmallModel) -> None:
    held = LawEntry("a", "1-x", "A sentence.", "held", "", "passed")
    broken = LawEntry("a", "2-y", "Another.", "broken", "it lands early", "failed")
    caught = MutantEntry("a", "m", "1-x", caught=True, caught_by=("1-x",), right_law=True, message="")
    missed = MutantEntry("a", "n", "2-y", caught=False, caught_by=(), right_law=False, message="")
    wrong = MutantEntry("a", "o", "2-y", caught=True, caught_by=("1-x",), right_law=False, message="")
    assert Report(BACKENDS, laws=[held], mutants=[caught]).ok
    assert [
        problem(e)[0] for e in Report(BACKENDS, laws=[held, broken], mutants=[caught, missed, wrong]).failures()
    ] == [
        "a, law 2-y is broken: it lands early",
        "a, mutant n is not caught; law 2-y should",
        "a, mutant o is caught by 1-x, and not by law 2-y",
    ]


def test_a_backend_on_which_nothing_was_measured_is_no_pass(small: SmallModel) -> None:
    result = blank(cell(), small.config)
    result.release |= {"a": Release(result.expected, result.expected), "b": None}
    result.notes["b"] = "it has no gates"
    report = Report(BACKENDS, [entry(result)])
    assert result.ok
    assert (report.unmeasured(), report.ok) == (["b"], False)
    assert notes(report.cells) == {("b", "it has no gates"): 1}
    donation = blank(cell(fence=DONATION), small.config)
    assert Report(BACKENDS, [entry(donation)]).unmeasured() == [], "there nothing may be measurable"


def test_the_overview_folds_what_agrees_and_names_what_does_not(small: SmallModel) -> None:
    agreed = [measured(small, cell(batch=b), "swa_translate.2", "swa_translate.2") for b in (1, 3)]
    forced = measured(small, cell(fence=COARSE), "end", "end")
    late = measured(small, cell(marker=False), "end", "end")
    (row,) = rows([entry(result) for result in (*agreed, forced, late)])
    assert (row.mode, row.attention, row.boundary) == ("decode", "live", "swa_translate.2")
    assert [square.text for square in row.squares] == ["=", "a: sample / b: end", "end", "-", "-"]
    assert [square.bad for square in row.squares] == [False, True, False, False, False]
    assert row.verdict == "✗ 1 of 4"


def test_skipped_cells_are_seen_in_the_overview(small: SmallModel) -> None:
    (row,) = rows([entry(blank(cell(batch=b), small.config), "skipped") for b in (1, 3)])
    assert row.verdict == "2 skipped"


def test_json_has_what_the_suite_promises(small: SmallModel) -> None:
    law = LawEntry("a", "1-x", "A sentence.", "held", "", "passed", seconds=0.5)
    document = Report(BACKENDS, [entry(measured(small, cell(), "layer.1", "layer.1"))], laws=[law]).to_json()
    assert {"ok", "cells", "laws", "mutants", "versions", "devices", "backends", "seconds", "date"} <= set(document)
    assert document["cells"] == [
        {
            "mode": "decode", "attention": "live", "fence": "fine", "marker": True, "batch": 1,
            "boundary": "swa_translate.2", "policy": "in_graph", "expected": "swa_translate.2",
            "release": {
                "a": {"opened": "swa_translate.2", "landed": "swa_translate.2"},
                "b": {"opened": "layer.1", "landed": "layer.1"},
            },
            "sound": False, "precise": False, "parity": False, "ok": False, "notes": {}, "status": "failed", "reason": "",
        }
    ]  # fmt: skip
    assert document["laws"][0]["outcome"] == "held"
