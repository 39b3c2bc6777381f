"""Tables that two lanes write. What holds a lane is a promise that the test keeps."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from warfence.core.backend import FORWARD, PLAN, SCHEDULE, ArraySpec
from warfence_jax.backend import JaxBackend
from warfence_jax.lanes import JaxLane

from .conftest import CONTEXT, MakeRig, slot
from .test_jax_lanes import Hold

SPECS = {"t": ArraySpec((2, 4)), "u": ArraySpec((1, 4))}


@pytest.fixture(params=["donated", "aliased"])
def backend(request: pytest.FixtureRequest) -> Iterator[JaxBackend]:
    made = JaxBackend(tables=request.param)
    made.made = made.tables(SPECS)
    yield made
    made.close()


def write(backend: JaxBackend, lane: JaxLane, cell: int, value: int, table: str = "t") -> None:
    backend.made.write(lane, table, np.array([cell], np.int32), np.array([value], np.int32))


def test_writes_of_two_lanes_land_in_the_order_of_their_waits(backend: JaxBackend) -> None:
    schedule, forward, plan = (backend.lane(n) for n in (SCHEDULE, FORWARD, PLAN))
    hold = Hold(backend, forward)
    schedule.wait_lane(forward)
    write(backend, schedule, 1, 10)
    plan.wait_lane(schedule)
    write(backend, plan, 1, 20)
    write(backend, plan, 2, 21)
    schedule.wait_lane(plan)
    write(backend, schedule, 2, 12)
    assert plan.settle(60) is False
    assert schedule.settle(60) is False
    hold.let_go()
    assert backend.made.snapshot_to_host("t")[0].tolist() == [0, 20, 12, 0]
    assert backend.report()["writes_held"] == 0


def test_a_snapshot_waits_for_the_writes_of_both_lanes(backend: JaxBackend) -> None:
    """Also where the write that was enqueued last lands first."""
    schedule, forward, plan = (backend.lane(n) for n in (SCHEDULE, FORWARD, PLAN))
    hold = Hold(backend, forward)
    schedule.wait_lane(forward)
    write(backend, schedule, 1, 10)
    write(backend, plan, 2, 20)
    with ThreadPoolExecutor(1) as pool:
        snapshot = pool.submit(backend.made.snapshot_to_host, "t")
        with pytest.raises(TimeoutError):
            snapshot.result(0.1)
        hold.let_go()
        assert snapshot.result(60)[0].tolist() == [0, 10, 20, 0]


def test_a_lane_that_waits_for_nobody_writes_another_table_at_once(backend: JaxBackend) -> None:
    schedule, forward, plan = (backend.lane(n) for n in (SCHEDULE, FORWARD, PLAN))
    hold = Hold(backend, forward)
    schedule.wait_lane(forward)
    write(backend, schedule, 1, 10)
    write(backend, plan, 1, 20, "u")
    assert plan.settle(60) is True
    assert backend.made.snapshot_to_host("u")[0, 1] == 20
    assert schedule.settle(60) is False
    hold.let_go()


@pytest.mark.parametrize("fenced", [True, False])
def test_a_write_that_is_held_through_another_lane_counts_where_no_wait_covers_it(fenced: bool) -> None:
    backend = JaxBackend()
    backend.made = backend.tables(SPECS)
    schedule, forward, plan = (backend.lane(n) for n in (SCHEDULE, FORWARD, PLAN))
    hold = Hold(backend, forward)
    reader = forward.newest()[0]
    backend.made.taken(backend.made.capture(forward, ["t"])["t"], reader)
    schedule.wait_lane(forward)
    write(backend, schedule, 1, 10)
    if fenced:
        plan.wait_lane(schedule)
    write(backend, plan, 1, 20)
    write(backend, plan, 2, 21)
    assert backend.report()["writes_held"] == (0 if fenced else 1)
    hold.let_go()
    assert backend.made.snapshot_to_host("t")[0].tolist() == [0, 20, 21, 0]
    backend.close()


@pytest.mark.slow
@pytest.mark.parametrize("tables", ["donated", "aliased"])
def test_a_forward_reads_what_both_lanes_wrote_before_it(make_rig: MakeRig, tables: str) -> None:
    rig = make_rig((False,), tables=tables)
    plan, forward = rig.backend.lane(PLAN), rig.compile()
    rig.launch(forward, [(1, 0, (5,), False)]).result()
    right = rig.launch(forward, [(1, 1, (7,), False)]).result()["margin"]
    rig.write(CONTEXT, slot(2, 9))  # position 0 is looked up where nothing lies
    plan.wait_lane(rig.schedule)
    rig.tables.write(plan, "req_to_token", np.array([CONTEXT], np.int32), np.array([slot(1, 0)], np.int32))
    rig.forward.wait_lane(plan)
    assert rig.launch(forward, [(1, 1, (7,), False)]).result()["margin"] == right
    assert rig.backend.report()["refused"] == 0
