"""Runs the parity matrix on backends and judges it. No pytest inside; `warfence parity` and the test suite call this."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from warfence.attention import make_attention
from warfence.backend import SCHEDULE, Backend, SharedTables
from warfence.batch import Batch, BatchLayout, BatchRow, pack
from warfence.errors import WarfenceError
from warfence.forwards import FencePlan, PlannedForward
from warfence.model.program import FULL_TO_SWA, REQ_TO_TOKEN, build, sliding_layers, state_specs, table_specs
from warfence.modes import ForwardMode
from warfence.probe import Prober, Release, Scratch
from warfence.program import ForwardProgram
from warfence.testing.cells import BATCHES, DONATION, FENCES, Cell, expected_release
from warfence.testing.small import SmallModel

MakeBackend = Callable[[], Backend]
CONTEXT, CHUNK, SPARE_ROW = 32, 4, max(BATCHES) + 1


@dataclass(slots=True)
class CellResult:
    """One cell on all backends. `release[backend]` is None where the cell does not apply there; `notes` says why."""

    cell: Cell
    boundary: str
    policy: str
    expected: str
    release: dict[str, Release | None] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    sound: bool = True
    precise: bool = True
    parity: bool = True
    as_expected: bool = True

    @property
    def ok(self) -> bool:
        """Sound everywhere, equal everywhere, and where the rules put it; so a fine ticket is precise too."""
        return self.sound and self.parity and self.as_expected

    def to_json(self) -> dict[str, object]:
        releases = {n: None if r is None else {"opened": r.opened, "landed": r.landed} for n, r in self.release.items()}
        return {
            "mode": self.cell.mode.name, "attention": self.cell.attention, "fence": self.cell.fence,
            "marker": self.cell.marker, "batch": self.cell.batch, "boundary": self.boundary, "policy": self.policy,
            "expected": self.expected, "release": releases, "sound": self.sound, "precise": self.precise,
            "parity": self.parity, "ok": self.ok, "notes": self.notes,
        }  # fmt: skip


class Rig:
    """One backend with the small model, ready to compile and probe the forwards of cells. Compiled once per shape."""

    def __init__(self, backend: Backend, small: SmallModel) -> None:
        self.backend, self.small = backend, small
        config, rows, slots = small.config, SPARE_ROW + 1, SPARE_ROW * CONTEXT
        self.tables: SharedTables = backend.tables(table_specs(config, CONTEXT, rows, slots))
        backend.load(small.weights, state_specs(config, rows, slots, slots))
        self._launches = itertools.count(1)
        self._made: dict[tuple[object, ...], PlannedForward] = {}
        self._fill_tables(slots)

    def planned(self, cell: Cell) -> tuple[PlannedForward, str | None]:
        """The gated forward of a cell with its decision, and the stage that its marker stands after."""
        attention = make_attention(cell.attention, sliding_layers(self.small.config))
        fence = FencePlan(attention, prefill_enabled=cell.mode.prefill_enabled, markers=cell.marker)
        mode, stage = cell.mode.mode, fence.marker_stage(cell.mode.mode)
        key = (mode, cell.attention, stage, cell.batch)
        if key not in self._made:
            program = build(self.small.config, attention, mode, layout(cell), sampled=False)
            forward = self.backend.compile(program, marker_after=stage, gated=True)
            self._made[key] = PlannedForward(forward, fence.decide(mode, forward.marker is not None))
        forward = self._made[key].forward
        marker = forward.marker.stage if forward.marker is not None else None
        return PlannedForward(forward, fence.decide(mode, marker is not None)), marker

    def prober(self, cell: Cell) -> Prober:
        """A prober of the cell's forward. Its scratch cell lies in a row that no batch uses."""
        planned, _ = self.planned(cell)
        scratch = Scratch(REQ_TO_TOKEN, SPARE_ROW * CONTEXT)
        return Prober(self.backend, self.tables, planned, batch_of(cell), scratch, self._launches)

    def _fill_tables(self, slots: int) -> None:
        """Every position of every row has a slot of its own, mapped to the same number in the sliding pool."""
        schedule = self.backend.lane(SCHEDULE)
        cells = np.arange(CONTEXT, SPARE_ROW * CONTEXT, dtype=np.int32)
        self.tables.write(schedule, REQ_TO_TOKEN, cells, cells - CONTEXT + 1)
        every = np.arange(1, slots, dtype=np.int32)
        self.tables.write(schedule, FULL_TO_SWA, every, every)


def layout(cell: Cell) -> BatchLayout:
    return BatchLayout(cell.batch, 1 if cell.mode.mode is ForwardMode.DECODE else CHUNK)


def batch_of(cell: Cell) -> Batch:
    """Rows 1..batch with valid tokens and slots."""
    shape = layout(cell)
    prefix = CHUNK if cell.mode.later_chunk else 0

    def row(i: int) -> BatchRow:
        first = (i - 1) * CONTEXT + prefix + 1
        slots = tuple(range(first, first + shape.queries))
        return BatchRow(i, prefix, tuple(range(shape.queries)), slots, False, 0.0, 1.0, 0.0)

    return pack(shape, [row(i) for i in range(1, cell.batch + 1)])


def run_matrix(rigs: Mapping[str, Rig], cells: Sequence[Cell]) -> Iterator[CellResult]:
    """Probe every cell on every backend; yields one judged result a cell."""
    for cell in cells:
        yield run_cell(rigs, cell)


def run_cell(rigs: Mapping[str, Rig], cell: Cell) -> CellResult:
    """Probe one cell on every backend and judge it."""
    result: CellResult | None = None
    for name, rig in rigs.items():
        planned, marker = rig.planned(cell)
        program = planned.forward.program
        boundary = program.read_boundary()
        expected = expected_release(cell, program, planned.decision.policy, marker)
        if result is None:
            result = CellResult(cell, boundary.name if boundary else "none", planned.decision.policy.value, expected)
        if cell.fence == DONATION and not rig.backend.capabilities.guards_writes:
            result.release[name] = None
            result.notes[name] = rig.backend.capabilities.reasons.get("guards_writes", "the runtime guards no write")
            continue
        try:
            release = rig.prober(cell).release(FENCES[cell.fence])
        except WarfenceError as error:
            result.release[name], result.notes[name] = None, str(error)
            result.as_expected = False
            continue
        result.release[name] = release
        judge(result, program, release, expected)
    assert result is not None, "run_cell needs at least one rig"
    landed = {r.landed for r in result.release.values() if r is not None}
    result.parity = len(landed) <= 1
    return result


def judge(result: CellResult, program: ForwardProgram, release: Release, expected: str) -> None:
    """Compare a measured release with the boundary (sound, precise) and with the rules (as expected)."""
    order = [*program.gate_positions(), "end"]
    boundary = order.index(result.boundary) if result.boundary != "none" else 0
    landed = order.index(release.landed)
    result.sound &= landed >= boundary
    result.precise &= landed == boundary
    result.as_expected &= release.landed == expected
    if result.cell.fence != DONATION:
        result.as_expected &= release.opened == expected


__all__ = ["CellResult", "MakeBackend", "Rig", "run_cell", "run_matrix"]
