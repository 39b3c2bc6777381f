"""What a run of the parity suite found: cells, laws and mutants, each with its status, and the whole as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from warfence.parity.cells import DONATION
from warfence.parity.matrix import CellResult
from warfence.parity.probe import Release

Status = Literal["passed", "failed", "not applicable", "skipped", "xfailed", "xpassed"]
BAD: tuple[Status, ...] = ("failed", "xpassed")


def status_of(ok: bool, xfail: str | None = None, *, applies: bool = True) -> Status:
    """Expected failures are strict: one that passes is bad. What cannot be done on any backend neither passes nor fails."""
    if ok and not applies:
        return "not applicable"
    if xfail is None:
        return "passed" if ok else "failed"
    return "xpassed" if ok else "xfailed"


@dataclass(frozen=True, slots=True)
class CellEntry:
    """One cell of the run. `reason`: of a skip or of an expected failure."""

    result: CellResult
    status: Status
    reason: str = ""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return self.result.to_json() | {"status": self.status, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class LawEntry:
    """One law on one backend: "held", "broken", "not applicable" or (by a skip) "not run", and what was seen."""

    backend: str
    id: str
    sentence: str
    outcome: str
    message: str
    status: Status
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class MutantEntry:
    """One mutant on one backend: a deliberate fault, to be caught by the law that forbids it.

    right: the backend's tickets are by value, and what is a fault with events is right with those: no law may break.
    """

    backend: str
    id: str
    law: str
    caught: bool
    caught_by: tuple[str, ...]
    right_law: bool
    message: str
    right: bool = False

    @property
    def status(self) -> Status:
        return status_of(not self.caught if self.right else self.caught and self.right_law)


Entry = CellEntry | LawEntry | MutantEntry


@dataclass(slots=True)
class Report:
    """A whole run. `backends`: target, device, capabilities and the reason of each lack, by name."""

    backends: Mapping[str, Mapping[str, Any]]
    cells: list[CellEntry] = field(default_factory=list)
    laws: list[LawEntry] = field(default_factory=list)
    mutants: list[MutantEntry] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    missing: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    devices: Sequence[Mapping[str, Any]] = ()
    seconds: float = 0.0
    date: str = ""

    @property
    def ok(self) -> bool:
        return not self.failures() and not self.unmeasured()

    def failures(self) -> list[Entry]:
        entries: list[Entry] = [*self.cells, *self.laws, *self.mutants]
        return [entry for entry in entries if entry.status in BAD]

    def unmeasured(self) -> list[str]:
        """Backends on which cells ran that any backend can be measured in, and none was."""
        ran = [e.result for e in self.cells if e.status != "skipped" and e.result.cell.fence != DONATION]
        return [name for name in self.backends if ran and not any(r.release.get(name) for r in ran)]

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok, "date": self.date, "seconds": round(self.seconds, 1), "backends": self.backends,
            "missing": self.missing, "unmeasured": self.unmeasured(), "warnings": self.warnings,
            "versions": self.versions, "devices": self.devices,
            "cells": [entry.to_json() for entry in self.cells],
            "laws": [{name: value for name, value in asdict(entry).items() if name != "seconds"} for entry in self.laws],
            "mutants": [asdict(entry) | {"status": entry.status} for entry in self.mutants],
        }  # fmt: skip


def reading(release: Release | None, fenced: bool) -> str:
    """One measured release in words. Without a fence there is no barrier that could open."""
    if release is None:
        return "not measured"
    if not fenced or release.opened == release.landed:
        return release.landed
    return f"opened {release.opened}, landed {release.landed}"


def verdicts(result: CellResult) -> str:
    """What is wrong with a cell, in a word or two each."""
    if result.failed:  # then nothing else is known of the cell
        return f"nothing measured on {', '.join(result.failed)}"
    wrong = {
        "UNSOUND": not result.sound,
        "no parity": not result.parity,
        "not where the rules put it": result.sound and not result.as_expected,
    }
    return ", ".join(word for word, applies in wrong.items() if applies) or "as expected"


def in_full(result: CellResult) -> list[str]:
    """A cell in full: what should be, and a line for each backend."""
    fenced = result.cell.fence != DONATION
    lines = [f"{result.cell.name}: {verdicts(result)}"]
    lines.append(f"read boundary {result.boundary}, policy {result.policy}, expected release {result.expected}")
    for name, release in result.release.items():
        note = result.notes.get(name)
        lines.append(f"{name}: {reading(release, fenced)}" + (f" ({note})" if note else ""))
    return lines


def problem(entry: Entry) -> list[str]:
    """Why an entry is bad, first in one line."""
    if entry.status == "xpassed" and not isinstance(entry, MutantEntry):
        name = entry.result.cell.name if isinstance(entry, CellEntry) else f"{entry.backend}, law {entry.id}"
        return [f"{name}: expected to fail ({entry.reason}), and passes: delete the line from the xfails file"]
    if isinstance(entry, CellEntry):
        return in_full(entry.result)
    if isinstance(entry, LawEntry):
        return [f"{entry.backend}, law {entry.id} is broken: {entry.message}", entry.sentence]
    by = ", ".join(entry.caught_by)
    if entry.right:
        return [f"{entry.backend}, mutant {entry.id} is right with tickets by value, and breaks {by}: {entry.message}"]
    seen = (
        f"is caught by {by}, and not by law {entry.law}" if entry.caught else f"is not caught; law {entry.law} should"
    )
    return [f"{entry.backend}, mutant {entry.id} {seen}" + (f": {entry.message}" if entry.message else "")]


def notes(cells: Iterable[CellEntry]) -> dict[tuple[str, str], int]:
    """(backend, note) -> in how many cells that are not bad."""
    found: dict[tuple[str, str], int] = {}
    for entry in cells:
        for name, note in entry.result.notes.items():
            if entry.status in ("passed", "not applicable"):
                found[name, note] = found.get((name, note), 0) + 1
    return found
