"""One backend under the small model, with its tables filled and its gated forwards made: what probes and laws run on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from contextlib import suppress

from warfence.core.attention import make_attention
from warfence.core.backend import FORWARD, SCHEDULE, ArraySpec, Backend, SharedTables
from warfence.core.batch import Batch, BatchLayout, BatchRow, pack
from warfence.core.forwards import FencePlan, PlannedForward
from warfence.core.modes import ForwardMode
from warfence.core.policy import RULES, Rule
from warfence.core.program import REQ_TO_TOKEN, ForwardProgram
from warfence.parity.cells import BATCHES, DONATION, Cell, mode_cases
from warfence.parity.probe import Prober, Scratch
from warfence.parity.small import BLOCK, SmallModel, small_drafting
from warfence.serve.fixture import Fixture
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.program import build, sliding_layers, state_specs
from warfence.serve.spec import get

MakeBackend = Callable[[], Backend]
CONTEXT, CHUNK, SPARE_ROW = 32, 4, max(BATCHES) + 1
QUERIES = max(CHUNK, BLOCK)  # the most new tokens of a row
ALIVE_S = 1.0  # how long a lane is given to become idle, after a failure, before it counts as dead


class Rig:
    """One backend with the small model, ready to compile and probe the forwards of cells. Compiled once per shape.

    `remake` makes another such backend, for when a forward died in this one. launches: numbers that the backend has not seen.
    """

    def __init__(self, backend: Backend, small: SmallModel, remake: MakeBackend | None = None) -> None:
        self.small, self._remake = small, remake
        self.launches = itertools.count(1)
        self._start(backend)

    def _start(self, backend: Backend) -> None:
        config, rows, slots = self.small.config, SPARE_ROW + 1, SPARE_ROW * CONTEXT
        state: dict[str, ArraySpec] = {}
        weights = dict(self.small.weights)
        for name in dict.fromkeys(case.spec for case in mode_cases()):  # one load for the forwards of all algorithms
            drafting = small_drafting(config, name)
            if drafting is not None:
                state |= state_specs(config, rows, slots, slots, drafting, QUERIES)
                weights |= drafting.weights
        self.fixture = Fixture.of_model(backend, config, weights, context=CONTEXT, rows=rows, slots=slots, state=state)
        self.fixture.launches = self.launches
        self.fill_tables()

    @property
    def backend(self) -> Backend:
        return self.fixture.backend

    @property
    def tables(self) -> SharedTables:
        return self.fixture.tables

    def planned(
        self, cell: Cell, marker_after: str | None = None, rules: tuple[Rule, ...] = RULES
    ) -> tuple[PlannedForward, str | None]:
        """The gated forward of a cell with its decision, and the stage that its marker stands after.

        marker_after: plant the marker there, and not where the attention backend declares that its reads end.
        rules: the rule set that decides.
        """
        program, fence = program_of(cell, self.small.config, rules)
        stage = marker_after or fence.marker_stage(cell.mode.mode)
        forward = self.fixture.forward(program, stage, gated=True)
        marker = forward.marker.stage if forward.marker is not None else None
        return PlannedForward(forward, fence.decide(cell.mode.mode, marker is not None)), marker

    def prepare(self, cells: Iterable[Cell], done: Callable[[], object] = lambda: None) -> None:
        """Compile for all these cells before the first is probed: a backend may compile several at once. What fails here fails
        again, and is reported, when its cell is probed. done: called after each."""
        for cell in cells:
            if cell.fence != DONATION or self.backend.capabilities.guards_writes:
                with suppress(Exception):
                    self.planned(cell)
            done()
        with suppress(Exception):
            self.backend.lane(FORWARD).synchronize()  # until all are there

    def prober(self, cell: Cell, marker_after: str | None = None, rules: tuple[Rule, ...] = RULES) -> Prober:
        """A prober of the cell's forward. Its scratch cell lies in a row that no batch uses."""
        planned, _ = self.planned(cell, marker_after, rules)
        scratch = Scratch(REQ_TO_TOKEN, SPARE_ROW * CONTEXT)
        return Prober(self.fixture, planned, batch_of(cell), scratch)

    def renew(self) -> None:
        """Start anew on a fresh backend when a lane of this one is dead. Called after a failure."""
        if self._remake is None or self._alive():
            return
        with suppress(Exception):  # what is dead may fail to close too
            self.backend.close()
        self._start(self._remake())

    def _alive(self) -> bool:
        try:
            for lane in (self.backend.lane(FORWARD), self.backend.lane(SCHEDULE)):
                if not lane.settle(ALIVE_S):
                    return False
                lane.synchronize()
        except Exception:
            return False
        return True

    def next_launch(self) -> int:
        """A launch number that this backend has not seen."""
        return next(self.launches)

    def fill_tables(self) -> None:
        """Every position of every row has a slot of its own, mapped to the same number in the sliding pool."""
        self.fixture.fill_rows(SPARE_ROW)


def layout(cell: Cell) -> BatchLayout:
    """The shape of a cell's batch: one token a row when it decodes, a chunk when it extends, a block when it verifies."""
    speculates = cell.mode.spec != "none"
    if cell.mode.mode in (ForwardMode.DECODE, ForwardMode.IDLE):
        return BatchLayout(cell.batch, 1, BLOCK if speculates else 1)
    if cell.mode.mode in (ForwardMode.TARGET_VERIFY, ForwardMode.DRAFT_EXTEND):
        return BatchLayout(cell.batch, BLOCK, 2 * BLOCK)
    if cell.mode.mode is ForwardMode.MIXED and speculates:
        return BatchLayout(cell.batch, CHUNK, CHUNK + BLOCK)
    return BatchLayout(cell.batch, CHUNK)


def batch_of(cell: Cell, from_relay: bool = False) -> Batch:
    """Rows 1..batch with valid tokens and slots; of a mixed batch the last row decodes, an idle one has padding only."""
    shape = layout(cell)
    prefix = CHUNK if cell.mode.later_chunk else 0

    def row(i: int) -> BatchRow:
        new = 1 if cell.mode.mode is ForwardMode.MIXED and i == cell.batch else shape.queries
        first = (i - 1) * CONTEXT + prefix + 1
        slots = tuple(range(first, first + new))
        return BatchRow(i, prefix, tuple(range(5, 5 + new)), slots, from_relay, 0.0, 1.0, ())

    if cell.mode.mode is ForwardMode.IDLE:
        return pack(shape, [])
    return pack(shape, [row(i) for i in range(1, cell.batch + 1)])


def program_of(cell: Cell, config: ModelConfig, rules: tuple[Rule, ...] = RULES) -> tuple[ForwardProgram, FencePlan]:
    """The program of a cell, and what is decided about its fence. Needs no backend."""
    attention = make_attention(cell.attention, sliding_layers(config))
    spec, mode = get(cell.mode.spec), cell.mode.mode
    fence = FencePlan(attention, spec, cell.mode.prefill_enabled, cell.marker, rules)
    drafting = small_drafting(config, spec.name)
    if mode is ForwardMode.DRAFT_EXTEND and drafting is not None:
        return drafting.draft_extend(attention.for_draft(), layout(cell)), fence
    return build(config, attention, mode, layout(cell), sampled=False, drafting=drafting), fence


__all__ = ["CHUNK", "CONTEXT", "SPARE_ROW", "MakeBackend", "Rig", "batch_of", "layout", "program_of"]
