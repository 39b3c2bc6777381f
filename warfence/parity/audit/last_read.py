"""Measures where a forward reads a shared table for the last time: by overwriting the tables under it, stage after stage.

The forward is held at a gate, every table gets other values, and the gate opens. If anything comes out different, there
was still a read to come. No declaration, trace or flag takes part. It needs tables that the runtime does not guard.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from warfence.core.batch import Batch
from warfence.core.errors import FenceError
from warfence.core.forwards import PlannedForward
from warfence.parity.audit.scene import Scene, Values
from warfence.serve.fixture import Fixture

Seen = dict[str, np.ndarray]
SETS = 4  # of wrong values that are tried before a position counts as one behind which nothing is read


class LastRead:
    """Finds the last read of one gated forward, by its outputs and by all private state that it keeps.

    first: a forward that runs on every batch before it, where it works on what that one left (a draft behind its verify).
    """

    def __init__(
        self, fixture: Fixture, planned: PlannedForward, scene: Scene, first: PlannedForward | None = None
    ) -> None:
        program, backend = planned.forward.program, fixture.backend
        if backend.capabilities.guards_writes:
            raise FenceError(f"backend {backend.name} guards its tables: nothing can be overwritten under a forward")
        self._fixture, self._planned, self._scene, self._first = fixture, planned, scene, first
        self._program = program
        self._state = tuple(dict.fromkeys(name for stage in program.stages for name in stage.state))

    def stage(self) -> str | None:
        """The stage of the last read; None where no overwriting shows. FenceError where two clean launches differ."""
        scene = self._scene
        for tables, batch in scene.stir(_tokens(self._run())):
            self._launch(tables, batch)
        self._run()
        clean = self._run()
        if not _equal(clean, self._run()):
            raise FenceError(
                f"'{self._program.name}': two launches of one batch differ, so there is nothing to compare"
            )
        for before, after in reversed(list(pairwise(self._program.gate_positions()))):
            for n in range(SETS):
                if not _equal(clean, self._run(before, scene.wrong(n))):
                    return after
        return None

    def _run(self, position: str | None = None, wrong: Values | None = None) -> Seen:
        """Smudge, launch, and see all that is there afterwards."""
        self._launch(self._scene.smudged(), self._scene.smudge)
        outputs = self._launch(self._scene.right, self._scene.batch, position, wrong)
        states = {name: self._fixture.backend.state_to_host(name) for name in self._state}
        return outputs | {f"state {name}": self._scene.counted(state) for name, state in states.items()}

    def _launch(self, right: Values, batch: Batch, position: str | None = None, wrong: Values | None = None) -> Seen:
        """One launch, its tables overwritten while it stands at the gate of that position."""
        self._write(right)
        if self._first is not None:
            self._fixture.execute(self._first, batch).result()
        if position is None or wrong is None:
            outputs = self._fixture.execute(self._planned, batch)
        else:
            with self._fixture.held(self._planned, batch, position) as outputs:
                self._write(wrong)
        seen = {name: np.array(value) for name, value in outputs.result().items()}
        self._fixture.lane.synchronize()
        return seen

    def _write(self, values: Values) -> None:
        for name, row in values.items():
            self._fixture.write(name, np.arange(len(row)), row)
        self._fixture.schedule.synchronize()


def _equal(a: Seen, b: Seen) -> bool:
    return all(np.array_equal(a[name], b[name], equal_nan=True) for name in a)


def _tokens(outputs: Seen) -> list[int]:
    """All whole numbers among the outputs: the tokens that were chosen are among them."""
    whole = [a.reshape(-1) for name, a in outputs.items() if a.dtype.kind == "i" and not name.startswith("state ")]
    return sorted({int(n) for n in np.concatenate(whole)}) if whole else [1]
