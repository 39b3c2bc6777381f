"""A report as JUnit XML: a suite for the cells, and one for the laws and one for the mutants of each backend."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from warfence.parity.report import CellEntry, Entry, MutantEntry, Report, problem

# What XML 1.0 has no way to write; a backend's message may hold any character.
_UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report) -> ElementTree[Element]:
    """One `testcase` for each cell, law and mutant, with `failure` or `skipped` inside where there is something to say."""
    root = Element("testsuites", name="warfence parity", time=f"{report.seconds:.3f}")
    _suite(root, report, "cells", report.cells)
    for name in report.backends:
        _suite(root, report, f"laws.{name}", [law for law in report.laws if law.backend == name])
        _suite(root, report, f"mutants.{name}", [mutant for mutant in report.mutants if mutant.backend == name])
    for key in ("tests", "failures", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    indent(root)
    return ElementTree(root)


def _suite(root: Element, report: Report, name: str, entries: Iterable[Entry]) -> None:
    entries = list(entries)
    if not entries:
        return
    suite = SubElement(root, "testsuite", name=name, timestamp=report.date, errors="0")
    for entry in entries:
        _case(suite, name, entry)
    suite.set("tests", str(len(entries)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    suite.set("time", f"{sum(_seconds(entry) for entry in entries):.3f}")


def _case(suite: Element, group: str, entry: Entry) -> None:
    name = entry.result.cell.name if isinstance(entry, CellEntry) else entry.id
    case = SubElement(
        suite, "testcase", classname=f"warfence.parity.{group}", name=_text(name), time=f"{_seconds(entry):.3f}"
    )
    if entry.status in ("failed", "xpassed"):
        lines = problem(entry)
        SubElement(case, "failure", message=_text(lines[0])).text = _text("\n".join(lines))
    elif not isinstance(entry, MutantEntry) and entry.status in ("skipped", "xfailed"):
        kind = "pytest.skip" if entry.status == "skipped" else "pytest.xfail"  # as pytest writes them
        SubElement(case, "skipped", type=kind, message=_text(entry.reason))
    elif entry.status == "not applicable":
        SubElement(case, "skipped", type=entry.status, message=_text(_why_not(entry)))


def _why_not(entry: Entry) -> str:
    if isinstance(entry, CellEntry):
        return "; ".join(f"{name}: {note}" for name, note in entry.result.notes.items())
    return entry.message


def _seconds(entry: Entry) -> float:
    return 0.0 if isinstance(entry, MutantEntry) else entry.seconds


def _text(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", text)
