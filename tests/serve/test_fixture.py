"""The one set-up that probes, benchmarks, recorded programs and tests stand on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.parity.suite.conftest import PROGRAM, kernels
from warfence.core.backend import ArraySpec
from warfence.core.batch import BatchLayout, pack
from warfence.core.errors import FenceError
from warfence.core.forwards import PlannedForward
from warfence.core.modes import ForwardMode, SharedReadEnds
from warfence.core.policy import Query, decide
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.parity.small import small_model
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.fixture import Fixture

BATCH = pack(BatchLayout(1, 1), [])


@pytest.fixture
def fixture() -> Fixture:
    return Fixture(StrictBackend(kernels=kernels()), {"t": ArraySpec((1, 4))}, state={"s": ArraySpec((1,), "float32")})


def test_a_forward_is_compiled_once_for_a_program_a_marker_and_gates(fixture: Fixture) -> None:
    first = fixture.forward(PROGRAM, "read")
    assert fixture.forward(replace(PROGRAM), "read") is first
    assert fixture.forward(PROGRAM) is not first
    assert fixture.forward(PROGRAM, "read", gated=True) is not first
    assert fixture.forward(replace(PROGRAM, name="other"), "read") is not first
    assert fixture.backend.compilations == 4


def test_a_launch_is_issued_fenced_and_numbered(fixture: Fixture) -> None:
    forward = fixture.forward(PROGRAM, "read")
    planned = PlannedForward(forward, decide(Query(ForwardMode.DECODE, SharedReadEnds.IN_GRAPH, marker=True)))
    fixture.write("t", [0], [7])
    outputs = fixture.execute(planned, BATCH)
    fixture.barrier(outputs.launch)
    fixture.write("t", [0], [9])
    assert outputs.result()["late"].tolist() == [7]
    fixture.settle()
    assert fixture.tables.snapshot_to_host("t")[0, 0] == 9
    assert fixture.launch(forward, BATCH).launch == outputs.launch + 1


def test_a_ticket_that_no_barrier_took_does_not_stand_in_the_way_of_the_next_launch(fixture: Fixture) -> None:
    planned = PlannedForward(
        fixture.forward(PROGRAM), decide(Query(ForwardMode.DECODE, SharedReadEnds.POST_REPLAY, marker=False))
    )
    for _ in range(2):
        fixture.execute(planned, BATCH).result()
    with pytest.raises(FenceError, match="ticket of launch 2"):
        fixture.barrier(1)


def test_rows_are_filled_with_slots_of_their_own() -> None:
    small = small_model()
    fixture = Fixture.of_model(StrictBackend(), small.config, small.weights, context=4, rows=4, slots=13)
    fixture.fill_rows(3)
    assert fixture.tables.snapshot_to_host(REQ_TO_TOKEN).tolist() == [
        [0] * 4, [1, 2, 3, 4], [5, 6, 7, 8], [0] * 4
    ]  # fmt: skip
    assert fixture.tables.snapshot_to_host(FULL_TO_SWA).tolist() == [list(range(13))]
    fixture.fill_rows()
    assert np.array_equal(fixture.tables.snapshot_to_host(REQ_TO_TOKEN)[3], [9, 10, 11, 12])


def test_it_closes_its_backend_whatever_happens() -> None:
    with pytest.raises(ZeroDivisionError), Fixture(StrictBackend(), {}) as fixture:
        raise ZeroDivisionError
    with pytest.raises(FenceError, match="closed"):
        fixture.forward(PROGRAM)


def test_a_launch_is_held_while_the_block_runs_and_let_go_whatever_happens(fixture: Fixture) -> None:
    decision = decide(Query(ForwardMode.DECODE, SharedReadEnds.IN_GRAPH, marker=True))
    planned = PlannedForward(fixture.forward(PROGRAM, "read", gated=True), decision)
    with fixture.held(planned, BATCH, "take") as first:
        fixture.barrier(first.launch)
        fixture.write("t", [0], [9])
        assert not fixture.schedule.settle(0.0)
    assert first.result()["late"].tolist() == [0]
    with fixture.held(planned, BATCH, "read") as second:
        fixture.barrier(second.launch)
        fixture.write("t", [0], [7])
        assert fixture.schedule.settle(0.0)
    assert second.result()["late"].tolist() == [9]
    with pytest.raises(ZeroDivisionError), fixture.held(planned, BATCH, "take") as third:
        raise ZeroDivisionError
    assert third.result()["late"].tolist() == [7]
    bare = PlannedForward(fixture.forward(PROGRAM, "read"), decision)
    with pytest.raises(FenceError, match="has no gates: compile it with gated=True"), fixture.held(bare, BATCH, "read"):
        pass
