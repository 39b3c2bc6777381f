"""A parity report that nobody measured: every release is where the rules put it, but for what a test spoils."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from warfence.parity.cells import DONATION, Cell
from warfence.parity.matrix import blank
from warfence.parity.probe import Release
from warfence.parity.report import CellEntry, LawEntry, MutantEntry, Report
from warfence.serve.model.config import ModelConfig

UNGUARDED = "tables are written in place; <only> the fence protects them"
BACKENDS: dict[str, dict[str, Any]] = {
    "torch": {
        "target": "torch", "device": "cpu", "capabilities": {"gates": True, "guards_writes": False},
        "reasons": {"guards_writes": UNGUARDED},
    },
    "jax": {
        "target": "jax", "device": "cpu", "capabilities": {"gates": True, "guards_writes": True}, "reasons": {},
    },
}  # fmt: skip


def made_up(cells: Iterable[Cell], config: ModelConfig) -> Report:
    """All in order on two backends, of which one guards no write."""
    return Report(
        BACKENDS,
        [entry(cell, config) for cell in cells],
        [
            LawEntry(name, id, sentence, "held", "", "passed")
            for name in BACKENDS
            for id, sentence in (("1-no-write-before-reads", "No <early> write."), ("2-release-at-boundary", "At it."))
        ],
        [
            MutantEntry(name, "late-release", "2-release-at-boundary", True, ("2-release-at-boundary",), True, "seen")
            for name in BACKENDS
        ],
        versions={"warfence": "0", "torch": "2"},
        date="2026-01-02T03:04:05+0000",
        seconds=1.5,
    )  # fmt: skip


def entry(cell: Cell, config: ModelConfig) -> CellEntry:
    """One cell as the rules want it."""
    result = blank(cell, config)
    for name in BACKENDS:
        if name == "torch" and cell.fence == DONATION:
            result.release[name], result.notes[name] = None, UNGUARDED
        else:
            result.release[name] = Release(result.expected, result.expected)
            result.compared.append(name)
    return CellEntry(result, "passed")
