"""A parity report that `warfence parity --json FILE` wrote, as the report that it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warfence.core.errors import InputError
from warfence.parity.cells import Cell, ModeCase, mode_cases
from warfence.parity.matrix import CellResult
from warfence.parity.probe import Release
from warfence.parity.report import CellEntry, LawEntry, MutantEntry, Report

PARTS = ("backends", "cells", "laws", "mutants", "date", "seconds")


def read_parity(path: Path) -> Report:
    """InputError for a file that cannot be read, that is none of ours, or that speaks of a mode that is not known here."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as cause:
        raise InputError(f"--parity '{path}' cannot be read ({cause.strerror}); {_give()}") from cause
    except ValueError as cause:
        raise InputError(f"--parity '{path}' is no JSON ({cause}); {_give()}") from cause
    if not isinstance(found, dict) or (lacking := [part for part in PARTS if part not in found]):
        what = f"it has no '{lacking[0]}'" if isinstance(found, dict) else "it is no JSON object"
        raise InputError(f"--parity '{path}' is no report of `warfence parity`: {what}; {_give()}")
    modes = {case.name: case for case in mode_cases()}
    try:
        return Report(
            backends=found["backends"],
            cells=[_cell(entry, modes) for entry in found["cells"]],
            laws=[_law(entry) for entry in found["laws"]],
            mutants=[_mutant(entry) for entry in found["mutants"]],
            warnings=found.get("warnings", []),
            missing=found.get("missing", {}),
            versions=found.get("versions", {}),
            devices=found.get("devices", ()),
            seconds=found["seconds"],
            date=found["date"],
        )
    except (KeyError, TypeError, AttributeError) as cause:
        raise InputError(f"--parity '{path}' is of another version of warfence ({cause!r}); measure again") from cause


def _give() -> str:
    return "give a file that `warfence parity --json FILE` wrote"


def _cell(entry: Mapping[str, Any], modes: Mapping[str, ModeCase]) -> CellEntry:
    if entry["mode"] not in modes:
        raise InputError(
            f"the parity report has the mode '{entry['mode']}', known here are: {', '.join(modes)}; "
            "install the plug-in that brings it, or measure again"
        )
    cell = Cell(modes[entry["mode"]], entry["attention"], entry["marker"], entry["fence"], entry["batch"])
    release = {name: None if r is None else Release(r["opened"], r["landed"]) for name, r in entry["release"].items()}
    nothing = not (entry["sound"] or entry["parity"])  # so `CellResult.fail` leaves a cell
    result = CellResult(
        cell, entry["boundary"], entry["policy"], entry["expected"], release, entry["notes"],
        sound=entry["sound"], precise=entry["precise"], parity=entry["parity"], as_expected=entry["ok"],
        failed=[name for name, r in release.items() if r is None] if nothing else [],
    )  # fmt: skip
    return CellEntry(result, entry["status"], entry["reason"])


def _law(entry: Mapping[str, Any]) -> LawEntry:
    return LawEntry(
        entry["backend"], entry["id"], entry["sentence"], entry["outcome"], entry["message"], entry["status"],
        entry["reason"],
    )  # fmt: skip


def _mutant(entry: Mapping[str, Any]) -> MutantEntry:
    return MutantEntry(
        entry["backend"], entry["id"], entry["law"], entry["caught"], tuple(entry["caught_by"]), entry["right_law"],
        entry["message"],
    )  # fmt: skip
