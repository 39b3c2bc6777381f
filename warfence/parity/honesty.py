"""What a backend said that it can do, held against what it did. A capability declared and not met fails the cell."""

from __future__ import annotations

import traceback
from pathlib import Path

from warfence.core.backend import Capabilities, Forward
from warfence.core.errors import WarfenceError
from warfence.core.program import ForwardProgram
from warfence.parity.cells import DONATION, FINE, Cell
from warfence.parity.probe import END, Release


def forward_lies(said: Capabilities, forward: Forward, marker_after: str | None) -> str | None:
    """What a forward lacks that was asked for, compiled with gated=True and this `marker_after`; None when nothing."""
    name = forward.program.name
    if said.gates and forward.gates is None:
        return f"the backend declares gates, but '{name}' compiled with gated=True has none"
    if said.external_markers and marker_after is not None and forward.marker is None:
        return (
            f"the backend declares external_markers, but '{name}' compiled with marker_after='{marker_after}' has none"
        )
    return None


def release_lies(
    said: Capabilities, cell: Cell, program: ForwardProgram, release: Release, expected: str
) -> str | None:
    """What a measured release shows to be untrue of the capabilities; None when nothing."""
    order = [*program.gate_positions(), END]
    boundary = program.read_boundary()
    if cell.fence == DONATION and boundary is not None and order.index(release.landed) < order.index(boundary.name):
        return (
            f"the backend declares guards_writes, but without a barrier a write landed with '{program.name}' held after "
            f"'{release.landed}', before its read boundary '{boundary.name}'"
        )
    late = order.index(release.landed) > order.index(expected) and release.opened == expected
    if cell.fence == FINE and said.precise_release and late:
        return (
            f"the backend declares precise_release, but '{program.name}' lets a write land only at '{release.landed}', "
            f"although the barrier opens at '{expected}'"
        )
    return None


def what_failed(error: Exception) -> str:
    """A failure of a backend under test in one sentence; of one that it did not foresee also where it came from."""
    if isinstance(error, WarfenceError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
