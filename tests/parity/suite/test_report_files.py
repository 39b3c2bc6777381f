"""The report as a file: JUnit XML that CI reads. The page for people has its tests in tests/show/report."""

from __future__ import annotations

import io
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest

from warfence.parity.cells import DONATION, FINE, MODES, Cell
from warfence.parity.junit import junit
from warfence.parity.matrix import blank
from warfence.parity.probe import Release
from warfence.parity.report import CellEntry, LawEntry, MutantEntry, Report
from warfence.parity.small import small_model

DECODE = MODES[0]
BACKENDS: dict[str, dict[str, Any]] = {
    "torch": {"device": "cpu", "capabilities": {"gates": True, "guards_writes": False}, "reasons": {"guards_writes": "<no>"}}
}  # fmt: skip


@pytest.fixture(scope="module")
def report() -> Report:
    """One of everything."""
    config = small_model().config
    right = blank(Cell(DECODE, "captured", True, FINE, 1), config)
    right.release["torch"] = Release("swa_translate", "swa_translate")
    failed = blank(Cell(DECODE, "live", True, FINE, 1), config)
    failed.fail("torch", "launch 3: a \x1b[31mred\x00 <message>")
    unguarded = blank(Cell(DECODE, "live", True, DONATION, 1), config)
    unguarded.release["torch"], unguarded.notes["torch"] = None, "written in place"
    other = blank(Cell(DECODE, "snapshot", True, FINE, 1), config)
    return Report(
        BACKENDS,
        [
            CellEntry(right, "passed", seconds=0.25), CellEntry(failed, "failed"),
            CellEntry(unguarded, "not applicable"), CellEntry(other, "skipped", "slow here"),
        ],
        [
            LawEntry("torch", "1-x", "A sentence.", "held", "", "passed"),
            LawEntry("torch", "2-y", "Another.", "not applicable", "gates: none", "not applicable"),
            LawEntry("torch", "3-z", "A third.", "broken", "seen", "xfailed", "a known bug"),
        ],
        [MutantEntry("torch", "late", "1-x", caught=False, caught_by=(), right_law=False, message="")],
        date="2026-01-02T03:04:05+0000",
        seconds=1.5,
    )  # fmt: skip


@pytest.fixture(scope="module")
def xml(report: Report) -> Element:
    written = io.BytesIO()
    junit(report).write(written, encoding="utf-8", xml_declaration=True)
    return fromstring(written.getvalue())


def test_junit_has_a_case_for_each_cell_law_and_mutant(xml: Element) -> None:
    assert [suite.get("name") for suite in xml] == ["cells", "laws.torch", "mutants.torch"]
    assert {key: xml.get(key) for key in ("tests", "failures", "skipped")} == {
        "tests": "8", "failures": "2", "skipped": "4",
    }  # fmt: skip
    names = [(case.get("classname"), case.get("name")) for case in xml.iter("testcase")]
    assert names[0] == ("warfence.parity.cells", "decode / captured / marker / fine / batch 1")
    assert names[4:6] == [("warfence.parity.laws.torch", "1-x"), ("warfence.parity.laws.torch", "2-y")]
    assert xml.find("testsuite").get("time") == "0.250"  # type: ignore[union-attr]


def test_junit_says_why(xml: Element) -> None:
    failure, mutant = xml.iter("failure")
    assert failure.get("message") == "decode / live / marker / fine / batch 1: nothing measured on torch"
    assert "launch 3: a \ufffd[31mred\ufffd <message>" in str(failure.text), "XML has no way to write those"
    assert mutant.get("message") == "torch, mutant late is not caught; law 1-x should"
    assert [(skip.get("type"), skip.get("message")) for skip in xml.iter("skipped")] == [
        ("not applicable", "torch: written in place"),
        ("pytest.skip", "slow here"),
        ("not applicable", "gates: none"),
        ("pytest.xfail", "a known bug"),
    ]
