"""A parity report that `warfence parity --json FILE` wrote, as the report that it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warfence.core.errors import InputError
from warfence.host.documents import read_document
from warfence.parity.cells import Cell, ModeCase, mode_cases
from warfence.parity.matrix import CellResult
from warfence.parity.probe import Release
from warfence.parity.report import CellEntry, LawEntry, MutantEntry, Report, Status


@dataclass(frozen=True, slots=True)
class SavedCell:
    """A cell as the document has it, flat."""

    mode: str
    attention: str
    fence: str
    marker: bool
    batch: int
    boundary: str
    policy: str
    expected: str
    release: dict[str, Release | None]
    sound: bool
    precise: bool
    parity: bool
    ok: bool
    notes: dict[str, str]
    status: Status
    reason: str


@dataclass(frozen=True, slots=True)
class SavedReport:
    """The document. What older ones lack has a default."""

    backends: Mapping[str, Mapping[str, Any]]
    cells: Sequence[SavedCell]
    laws: list[LawEntry]
    mutants: list[MutantEntry]
    date: str
    seconds: float
    warnings: list[str] = field(default_factory=list)
    missing: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    devices: Sequence[Mapping[str, Any]] = ()


def read_parity(path: Path) -> Report:
    """InputError for a file that cannot be read, that is none of ours, or that speaks of a mode that is not known here."""
    remedy = "give a file that `warfence parity --json FILE` wrote, or measure again"
    found = read_document(path, SavedReport, "report of `warfence parity`", remedy, f"--parity '{path}'")
    modes = {case.name: case for case in mode_cases()}
    return Report(
        backends=found.backends, cells=[_entry(cell, modes) for cell in found.cells], laws=found.laws,
        mutants=found.mutants, warnings=found.warnings, missing=found.missing, versions=found.versions,
        devices=found.devices, seconds=found.seconds, date=found.date,
    )  # fmt: skip


def _entry(saved: SavedCell, modes: Mapping[str, ModeCase]) -> CellEntry:
    if saved.mode not in modes:
        raise InputError(
            f"the parity report has the mode '{saved.mode}', known here are: {', '.join(modes)}; "
            "install the plug-in that brings it, or measure again"
        )
    cell = Cell(modes[saved.mode], saved.attention, saved.marker, saved.fence, saved.batch)
    nothing = not (saved.sound or saved.parity)  # so `CellResult.fail` leaves a cell
    result = CellResult(
        cell, saved.boundary, saved.policy, saved.expected, saved.release, saved.notes,
        sound=saved.sound, precise=saved.precise, parity=saved.parity, as_expected=saved.ok,
        failed=[name for name, release in saved.release.items() if release is None] if nothing else [],
    )  # fmt: skip
    return CellEntry(result, saved.status, saved.reason)
