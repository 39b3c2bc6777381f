"""One backend under a decoder of random weights: tables filled, KV written, forwards compiled, a batch packed.

Every batch decodes at the same position, so a launch's outputs depend on the tables alone. Of the writes of a step one is
live: it hands the first columns of row 1 from one set of KV slots to another and back. A forward that sees the write of the
next step, or misses its own, gives other outputs, and so a wrong fence cannot look fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warfence.bench.presets import CONTEXT, WINDOW
from warfence.bench.programs import decode_program
from warfence.core.backend import Backend
from warfence.core.batch import Batch, BatchLayout, BatchRow, pack
from warfence.core.errors import InputError, WarfenceError
from warfence.core.forwards import PlannedForward
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.serve.fixture import Fixture
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.program import state_specs, table_specs
from warfence.serve.model.weights import Weights
from warfence.serve.sampling import NEAR_TIE

POSITION = WINDOW - 1  # where every row decodes: all that came before is in the window
CELLS = 8  # of one table write
LEAST_EFFECT = 10  # times the tolerance: what the live write must change
Write = tuple[np.ndarray, np.ndarray]  # cells of req_to_token, and their values
Work = tuple[Sequence[Write], Sequence[Write]]  # the writes of even steps, and of odd ones
Result = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Size:
    """What a fixture is made for. table_rows counts the reserved row 0; at least one row is not of the batch."""

    config: ModelConfig
    batch: int
    table_rows: int

    def __post_init__(self) -> None:
        if self.batch < 1 or self.table_rows < self.batch + 2:
            raise InputError(
                f"a batch of {self.batch} needs at least {self.batch + 2} table rows (one reserved, one that no request "
                f"uses); given were {self.table_rows}"
            )

    @property
    def slots(self) -> int:
        """KV slots: a row's worth for each request, one for row 1's other set, and the reserved slot 0."""
        return (self.batch + 2) * CONTEXT


class BenchFixture(Fixture):
    """One backend, ready to launch and to be measured."""

    def __init__(self, backend: Backend, size: Size, weights: Weights) -> None:
        self.size, config = size, size.config
        state = state_specs(config, size.table_rows, size.slots, size.slots)
        super().__init__(backend, table_specs(config, CONTEXT, size.table_rows, size.slots), weights, state)
        self.layout = BatchLayout(size.batch, 1)
        self.batch = self._batch(POSITION, 0)

    def planned(self, attention: str, marker: bool) -> PlannedForward:
        """The forward that decodes this way; compiled when first asked for."""
        program, fence = decode_program(self.size.config, attention, marker, self.layout)
        return fence.planned(self.forward(program, fence.marker_stage(program.mode)))

    def fill(self, planned: PlannedForward) -> None:
        """Fill the tables, then the KV of every position before the one that is measured, by decoding."""
        rows = np.arange(CONTEXT, (self.size.batch + 1) * CONTEXT, dtype=np.int32)
        self.write(REQ_TO_TOKEN, rows, rows)  # slot of a position: its cell, for plainness
        every = np.arange(1, self.size.slots, dtype=np.int32)
        self.write(FULL_TO_SWA, every, every)
        for other in (0, 1):
            for position in range(CELLS if other else POSITION):
                self.run(planned, self._batch(position, other))

    def run(self, planned: PlannedForward, batch: Batch | None = None) -> Result:
        """One launch, awaited."""
        outputs = self.execute(planned, batch or self.batch)
        self.runner.mailbox.clear()
        return outputs.result()

    def work(self, writes: int) -> Work:
        """The writes of even and odd steps: the live one, then others into rows that no request uses."""
        rng = np.random.default_rng(writes)
        first = (self.size.batch + 1) * CONTEXT  # the first cell that no request uses
        live = np.arange(CONTEXT, CONTEXT + CELLS, dtype=np.int32)
        made: list[list[Write]] = []
        for other in (0, 1):
            others = []
            for _ in range(writes - 1):
                cells = rng.choice(self.size.table_rows * CONTEXT - first, CELLS, replace=False)
                others.append(((cells + first).astype(np.int32), np.full(CELLS, other + 1, np.int32)))
            made.append([(live, live + other * self._to_other_set), *others])
        return made[0], made[1]

    def expected(self, planned: PlannedForward, work: Work) -> tuple[Result, Result]:
        """What launches of even and odd steps give, one at a time. WarfenceError unless the live write makes a difference."""
        results = []
        for writes in work:
            self.write(REQ_TO_TOKEN, *writes[0])
            results.append(self.run(planned))
        even, odd = results
        effect = abs(even["margin"][0] - odd["margin"][0])
        if effect < LEAST_EFFECT * tolerance(even["margin"][:1])[0]:
            raise WarfenceError(
                f"bench: the live write changes a margin by {effect:.1e} only, so a wrong fence would not be seen; "
                f"choose another --forward"
            )
        return even, odd

    @property
    def _to_other_set(self) -> int:
        """From a slot of row 1 to its counterpart: the slots of the row behind the batch's, which has none itself."""
        return self.size.batch * CONTEXT

    def _batch(self, position: int, other: int) -> Batch:
        """Every row decodes one token at this position; with `other`, row 1 leaves another token in its other slots."""
        rows = []
        for row in range(1, self.size.batch + 1):
            token = (31 * row + 7 * position + (101 if other and row == 1 else 0)) % self.size.config.vocab
            slot = row * CONTEXT + position + (self._to_other_set if other and row == 1 else 0)
            rows.append(BatchRow(row, position, (token,), (slot,), False, 0.0, 1.0, ()))
        return pack(self.layout, rows)


def tolerance(margins: np.ndarray) -> np.ndarray:
    """How far two margins may be apart that differ by order of summation alone."""
    return np.asarray(1e-3 + 1e-3 * np.abs(margins))


def difference(seen: Result, expected: Result) -> str | None:
    """A clause about the first row that is not as expected; None where all are. Near ties may fall either way."""
    for row, (token, margin) in enumerate(zip(seen["next_tokens"], seen["margin"], strict=True)):
        right, right_margin = expected["next_tokens"][row], expected["margin"][row]
        near = right_margin < NEAR_TIE
        if (token != right and not near) or abs(margin - right_margin) > tolerance(right_margin):
            return f"row {row + 1}: token {token}, margin {margin:.4f}, instead of {right}, {right_margin:.4f}"
    return None
