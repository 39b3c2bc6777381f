"""One backend made ready: tables and state, lanes, a runner, launch numbers, forwards that are compiled once.

Probes and laws (`warfence.parity.rig`), benchmarks (`warfence.bench.fixture`), random programs, recorded scenarios and tests
all stand on it; what each of them adds is its programs, its batches, and what it fills the tables with.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

import numpy as np
from jaxtyping import Int32

from warfence.core.backend import FORWARD, PLAN, SCHEDULE, ArraySpec, Backend, Forward, Lane, Outputs, SharedTables
from warfence.core.batch import Batch
from warfence.core.errors import FenceError
from warfence.core.fence import WarBarrier
from warfence.core.forwards import PlannedForward
from warfence.core.modes import FenceMode
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN, ForwardProgram, Gated
from warfence.core.runner import Runner
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.program import state_specs, table_specs
from warfence.serve.model.weights import Weights


class Fixture:
    """A backend with its tables made and its state loaded. Closed by `close`, or at the end of a `with` block.

    backend: a fresh one, since tables and state are made once. tables, state: arrays by name, zeroed. params: float32 weights.
    launches: numbers that this backend has not seen.
    """

    def __init__(
        self, backend: Backend, tables: Mapping[str, ArraySpec], params: Weights | None = None,
        state: Mapping[str, ArraySpec] | None = None,
    ) -> None:  # fmt: skip
        self.backend, self.specs = backend, dict(tables)
        self.tables: SharedTables = backend.tables(tables)
        backend.load(params or {}, state or {})
        self.schedule: Lane = backend.lane(SCHEDULE)
        self.lane: Lane = backend.lane(FORWARD)
        self.runner = Runner("fixture", self.lane, self.schedule)
        self.launches = itertools.count(1)
        self._made: dict[tuple[ForwardProgram, str | None, Gated], Forward] = {}

    @classmethod
    def of_model(
        cls, backend: Backend, config: ModelConfig, weights: Weights, *, context: int, rows: int, slots: int,
        state: Mapping[str, ArraySpec] | None = None,
    ) -> Self:  # fmt: skip
        """With the tables and the state of a model. rows counts the reserved row 0, slots the reserved slot 0; state: more."""
        specs = {**state_specs(config, rows, slots, slots), **(state or {})}
        return cls(backend, table_specs(config, context, rows, slots), weights, specs)

    @property
    def plan(self) -> Lane:
        """The plan lane, made at first use."""
        return self.backend.lane(PLAN)

    def forward(self, program: ForwardProgram, marker_after: str | None = None, gated: Gated = False) -> Forward:
        """The compiled forward of a program; each is compiled once."""
        key = (program, marker_after, gated)
        if key not in self._made:
            self._made[key] = self.backend.compile(program, marker_after=marker_after, gated=gated)
        return self._made[key]

    def write(
        self, table: str, cells: Sequence[int] | Int32[np.ndarray, " n"], values: Sequence[int] | Int32[np.ndarray, " n"],
        lane: Lane | None = None,
    ) -> None:  # fmt: skip
        """Enqueue a write of these cells, on the schedule lane unless another is given."""
        self.tables.write(lane or self.schedule, table, np.array(cells, np.int32), np.array(values, np.int32))

    def fill_rows(self, last: int | None = None) -> None:
        """Of a model: every position of the rows from 1 to before `last` (of all, unless given) has a KV slot of its own, and
        every slot the same number in the sliding pool."""
        rows, context = self.specs[REQ_TO_TOKEN].shape
        cells = np.arange(context, (last or rows) * context, dtype=np.int32)
        self.write(REQ_TO_TOKEN, cells, cells - context + 1)
        if FULL_TO_SWA in self.specs:
            slots = np.arange(1, self.specs[FULL_TO_SWA].shape[1], dtype=np.int32)
            self.write(FULL_TO_SWA, slots, slots)

    def launch(self, forward: Forward, batch: Batch, number: int | None = None) -> Outputs:
        """Issue all three regions of one launch; nothing is waited for. number: the next one, unless given."""
        number = next(self.launches) if number is None else number
        forward.load_batch(batch, number)
        forward.replay(number)
        return forward.tail(number)

    def execute(self, planned: PlannedForward, batch: Batch) -> Outputs:
        """One launch behind the schedule lane, as the scheduler makes it. Its ticket is in the runner's mailbox afterwards; what
        an earlier launch left there is dropped."""
        self.runner.mailbox.clear()
        return self.runner.execute(planned, batch, next(self.launches))

    @contextmanager
    def held(self, planned: PlannedForward, batch: Batch, position: str) -> Iterator[Outputs]:
        """One launch that stands at this gate while the block runs; behind it all gates are open. FenceError: no gates."""
        gates = planned.forward.gates
        if gates is None:
            raise FenceError(f"'{planned.forward.program.name}' has no gates: compile it with gated=True to hold it")
        gates.close(position)
        try:
            outputs = self.execute(planned, batch)
            gates.await_reached(position)
            yield outputs
        finally:
            gates.open_all()

    def barrier(self, launch: int, mode: FenceMode = FenceMode.FINE) -> None:
        """The WAR barrier behind `execute`: the schedule lane waits for what the launch left in the mailbox."""
        WarBarrier(mode).apply(launch, self.runner.mailbox, self.schedule, self.lane)

    def settle(self) -> None:
        """Block until the lanes of forwards and of the schedule are idle."""
        self.lane.synchronize()
        self.schedule.synchronize()

    def close(self) -> None:
        """Close the backend."""
        self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
