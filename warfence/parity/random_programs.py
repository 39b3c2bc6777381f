"""Random forwards: stages that read, or do not read, some of two tables, in two regions, with a marker or without.

The neutral model of such a program is a few lines of integer arithmetic (`outputs_of`) and the rules (`decide`), so every
release and every output of a backend can be compared with what it must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from hypothesis import strategies as st

from warfence.core.backend import ArraySpec, Backend
from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.errors import WarfenceError
from warfence.core.forwards import PlannedForward
from warfence.core.modes import FenceMode, ForwardMode, Region, SharedReadEnds, WarReadDonePolicy
from warfence.core.policy import Query, decide
from warfence.core.program import ForwardProgram, Stage
from warfence.parity.probe import END, Prober, Release, Scratch
from warfence.serve.fixture import Fixture

TABLES = ("left", "right")
ROWS, COLUMNS, BATCH = 5, 4, 2
LAYOUT = BatchLayout(BATCH, 1)
CELLS = np.arange(ROWS * COLUMNS, dtype=np.int32)
SPARE = Scratch(TABLES[0], (ROWS - 1) * COLUMNS)  # the last row is in no batch


@dataclass(frozen=True, slots=True)
class RandomProgram:
    """A program, the values in its tables, and whether a marker is wanted. `seed` fills the tables."""

    program: ForwardProgram
    marker: bool
    seed: int

    @property
    def boundary(self) -> Stage | None:
        return self.program.read_boundary()

    @property
    def declared(self) -> SharedReadEnds:
        """What an honest attention backend would declare for it."""
        boundary = self.boundary
        in_replay = boundary is not None and boundary.region is Region.REPLAY
        return SharedReadEnds.IN_GRAPH if in_replay else SharedReadEnds.PRE_REPLAY

    def tables(self) -> dict[str, np.ndarray]:
        """Small random int32 values, [ROWS, COLUMNS] each."""
        rng = np.random.default_rng(self.seed)
        return {n: rng.integers(1, 100, (ROWS, COLUMNS)).astype(np.int32) for n in TABLES}

    def outputs_of(self, tables: dict[str, np.ndarray]) -> np.ndarray:
        """The neutral model: the value of `mix` [BATCH] when every stage reads these tables."""
        rows = np.arange(1, BATCH + 1, dtype=np.int32)
        value: np.ndarray | None = None
        with np.errstate(over="ignore"):
            for stage in self.program.stages:
                column = cast(int, stage.attrs["column"])
                value = rows.copy() if value is None else (np.int32(31) * value).astype(np.int32)
                for name in stage.reads:
                    value = value + tables[name][rows, column]
        assert value is not None
        return value


@st.composite
def random_programs(draw: st.DrawFn) -> RandomProgram:
    """One to three loading stages, one to five replay stages, one tail stage that reads nothing."""
    counts = {Region.LOAD_BATCH: draw(st.integers(1, 3)), Region.REPLAY: draw(st.integers(1, 5)), Region.TAIL: 1}
    stages: list[Stage] = []
    for region, count in counts.items():
        for _ in range(count):
            readable: tuple[str, ...] = () if region is Region.TAIL else TABLES
            reads = tuple(name for name in readable if draw(st.booleans()))
            takes = ("req_pool_indices", "mix") if stages else ("req_pool_indices",)
            attrs: dict[str, Any] = {"tables": reads, "column": draw(st.integers(0, COLUMNS - 1))}
            stages.append(
                Stage(f"s{len(stages)}", region, "mix", reads=reads, takes=takes, gives=("mix",), attrs=attrs)
            )
    program = ForwardProgram("random", ForwardMode.DECODE, LAYOUT, tuple(stages), outputs=("mix",))
    return RandomProgram(program, draw(st.booleans()), draw(st.integers(0, 2**16)))


class RandomBench:
    """A backend with the two tables, for many random programs one after the other."""

    def __init__(self, backend: Backend) -> None:
        self.fixture = Fixture(backend, {name: ArraySpec((ROWS, COLUMNS)) for name in TABLES})
        self._batch = pack(LAYOUT, [BatchRow(i, 0, (0,), (0,), False, 0.0, 1.0, ()) for i in range(1, BATCH + 1)])

    def check(self, case: RandomProgram) -> Release:
        """Compile and probe one program; WarfenceError with a sentence where it is not what the model says.

        Then everything is overwritten at the release point itself, the earliest instant at which that is legal, and the
        outputs must still be those of the old values.
        """
        boundary = case.boundary
        stage = boundary.name if boundary is not None and boundary.region is Region.REPLAY and case.marker else None
        forward = self.fixture.backend.compile(case.program, marker_after=stage, gated=True)  # many, each used once
        marker = forward.marker.stage if forward.marker is not None else None
        decision = decide(Query(ForwardMode.DECODE, case.declared, marker=marker is not None))
        planned = PlannedForward(forward, decision)
        self._fill(case.tables())
        release = Prober(self.fixture, planned, self._batch, SPARE).release(FenceMode.FINE)
        expected = self._expected(case, decision.policy, marker)
        if not release.opened == release.landed == expected:
            raise WarfenceError(f"{case}: released at {release}, the rules ({decision.rule}) put it at '{expected}'")
        seen = self._poisoned_at(planned, release.landed)
        right = case.outputs_of(case.tables())
        if seen.tolist() != right.tolist():
            raise WarfenceError(f"{case}: overwritten at '{release.landed}' the output is {seen}, not {right}")
        return release

    @staticmethod
    def _expected(case: RandomProgram, policy: WarReadDonePolicy, marker: str | None) -> str:
        if policy is WarReadDonePolicy.PRE_REPLAY:
            return case.program.region(Region.LOAD_BATCH)[-1].name
        if policy is WarReadDonePolicy.IN_GRAPH and marker is not None:
            return marker
        return case.program.region(Region.REPLAY)[-1].name if policy is not WarReadDonePolicy.NONE else END

    def _fill(self, tables: dict[str, np.ndarray]) -> None:
        for name, table in tables.items():
            self.fixture.write(name, CELLS, table.reshape(-1))
        self.fixture.schedule.synchronize()

    def _poisoned_at(self, planned: PlannedForward, position: str) -> np.ndarray:
        fixture = self.fixture
        with fixture.held(planned, self._batch, position) as outputs:
            fixture.barrier(outputs.launch)
            for name in TABLES:
                fixture.write(name, CELLS, np.full(CELLS.size, -7))
            fixture.schedule.settle(1.0)
        result = np.array(outputs.result()["mix"])
        fixture.settle()
        return result
