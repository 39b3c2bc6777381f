"""The race that the sliding snapshot closes: a per-layer look-up of the live map, after an early release.

The same writes in the same order: to a forward that looks the map up at each layer they change what it computes, to one
that translated once, when its metadata was made, they change nothing (public source: sglang #32460).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from parity_tests.plugin import unguarded_options
from warfence.backends import load
from warfence.core.forwards import PlannedForward
from warfence.core.modes import Region, WarReadDonePolicy
from warfence.core.policy import Decision
from warfence.core.program import FULL_TO_SWA
from warfence.parity.cells import FINE, MODES, Cell
from warfence.parity.matrix import Rig
from warfence.parity.rig import batch_of
from warfence.parity.small import SmallModel

Target = tuple[str, str]
pytestmark = pytest.mark.slow
CASES = {case.name: case for case in MODES}
EARLY = Decision(WarReadDonePolicy.PRE_REPLAY, "early", "recorded when the batch was loaded")


@pytest.fixture(scope="module")
def rig(target: Target, small: SmallModel) -> Iterator[Rig]:
    made = Rig(load(target[0])(device=target[1], **unguarded_options(target)), small)
    yield made
    made.backend.close()


@pytest.mark.parametrize("mode", ["decode", "target_verify+dflash", "extend"])
def test_a_live_lookup_after_an_early_release_is_corrupted_and_a_snapshot_is_not(rig: Rig, mode: str) -> None:
    for attention, follows in (("live", True), ("snapshot", False)):
        cell = Cell(CASES[mode], attention, False, FINE, 1)
        planned = replace(rig.planned(cell)[0], decision=EARLY)
        right = _launch(rig, cell, planned, poison=False)
        wrong = _launch(rig, cell, planned, poison=True)
        same = all(np.array_equal(right[name], wrong[name]) for name in right)
        assert same is not follows, f"{attention}: margins {right['margin']} and {wrong['margin']}"


def _launch(rig: Rig, cell: Cell, planned: PlannedForward, poison: bool) -> Mapping[str, np.ndarray]:
    """One launch, held right after its batch was loaded while the live map is overwritten behind the early ticket."""
    fixture = rig.fixture
    last_load = planned.forward.program.region(Region.LOAD_BATCH)[-1].name
    table = rig.tables.snapshot_to_host(FULL_TO_SWA)
    every = np.arange(table.size)
    with fixture.held(planned, batch_of(cell), last_load) as outputs:
        fixture.barrier(outputs.launch)
        if poison:
            fixture.write(FULL_TO_SWA, every, np.full(table.size, table.size - 1))
            assert fixture.schedule.settle(5.0), "the early ticket was to let the write land"
    result = {name: array.copy() for name, array in outputs.result().items()}
    fixture.lane.synchronize()
    fixture.write(FULL_TO_SWA, every, table.reshape(-1))
    fixture.schedule.synchronize()
    return result
