"""Proof by holding: where a donated write lands while a cut function stands at a gate, on real lanes."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

from warfence.core.backend import FORWARD, SCHEDULE, ArraySpec
from warfence.core.errors import DeadHandleError, FenceError, InputError
from warfence.core.gates import HostGates
from warfence_jax import cut, marked
from warfence_jax.backend import JaxBackend

GATES = HostGates(("before", "after"))
X = jnp.arange(4, dtype=jnp.int32)


def gate(position: str, value: jax.Array) -> jax.Array:
    def pass_through(passed: np.ndarray) -> np.ndarray:
        GATES.pass_through(position)
        return passed

    return io_callback(pass_through, jax.typeof(value), value, ordered=True)


def fn(t, x):
    with jax.named_scope("read"):
        row = t[gate("before", x)[1]]
    with jax.named_scope("work"):
        return gate("after", row * 2) + 1


class Lanes:
    def __init__(self, device: str = "cpu") -> None:
        self.backend = JaxBackend(device)
        self.forward, self.schedule = self.backend.lane(FORWARD), self.backend.lane(SCHEDULE)
        self.tables = self.backend.tables({"t": ArraySpec((2, 4))})
        self.launches = 0

    def issue(self, made):
        """One launch with the version current now."""
        self.launches += 1
        version = self.tables.capture(self.forward, ["t"])["t"]
        return made.replay(self.forward, self.launches, (version, X), self.tables)

    def write(self, value: int) -> None:
        self.tables.write(self.schedule, "t", np.arange(4, 8), np.full(4, value, np.int32))


@pytest.fixture(scope="module")
def lanes() -> Iterator[Lanes]:
    made = Lanes()
    yield made
    GATES.abort()
    made.backend.close()


@pytest.fixture(scope="module")
def made():
    return cut(fn, (jax.ShapeDtypeStruct((2, 4), jnp.int32), X), shared_argnums=0)


@pytest.mark.slow
@pytest.mark.parametrize(("held_at", "policy", "lands"), [
    ("before", "ticket", False), ("after", "ticket", True), ("after", "coarse", False),
    ("before", "off", False), ("after", "off", True),
])  # fmt: skip
def test_the_write_lands_when_the_head_is_over(lanes: Lanes, made, held_at: str, policy: str, lands: bool) -> None:
    """off: no fence at all; that the head took the array is what holds the write."""
    lanes.write(lanes.launches)
    lanes.forward.wait_lane(lanes.schedule)
    GATES.close(held_at)
    issued = lanes.issue(made)
    if policy == "ticket":
        lanes.schedule.wait(made.ticket(lanes.launches))
    elif policy == "coarse":
        lanes.schedule.wait_lane(lanes.forward)
    GATES.await_reached(held_at)
    lanes.write(77)
    assert lanes.schedule.settle(60) is lands
    GATES.open(held_at)
    np.testing.assert_array_equal(issued.result(), np.full(4, (lanes.launches - 1) * 2 + 1))
    lanes.schedule.synchronize()
    report = lanes.backend.report()
    assert (report["writes_copied"], report["refused"]) == (0, 0)
    assert lanes.tables.snapshot_to_host("t")[1, 0] == 77


@pytest.mark.slow
def test_uncut_the_function_holds_the_array_to_its_end(lanes: Lanes) -> None:
    """The negative arm: a last look at the array behind all work, and no cut helps."""
    whole = cut(lambda t, x: fn(t, x) + t[0], (X.reshape(1, 4).repeat(2, 0), X), shared_argnums=0)
    GATES.close("after")
    issued = lanes.issue(whole)
    lanes.schedule.wait(whole.ticket(lanes.launches))
    GATES.await_reached("after")
    lanes.write(5)
    assert not lanes.schedule.settle(60)
    GATES.open("after")
    assert issued.result().shape == (4,)
    lanes.schedule.synchronize()


@pytest.mark.slow
def test_a_ticket_is_out_before_the_start_where_nothing_is_read(lanes: Lanes) -> None:
    made = cut(lambda t, x: gate("after", x), (X.reshape(1, 4).repeat(2, 0), X), shared_argnums=0)
    GATES.close("after")
    issued = lanes.issue(made)
    lanes.schedule.wait(made.ticket(lanes.launches))
    GATES.await_reached("after")
    lanes.write(6)
    assert lanes.schedule.settle(60)
    GATES.open("after")
    np.testing.assert_array_equal(issued.result(), X)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lands"), [("early", True), (None, False)])
def test_each_array_has_a_ticket_of_its_own(lanes: Lanes, name: str | None, lands: bool) -> None:
    """`early` was read for the last time, `late` not yet: only the ticket that is named is out."""

    def both(early, late, x):
        return gate("after", early[0] + x) + late[0]

    tables = lanes.tables
    made = cut(both, (jax.ShapeDtypeStruct((2, 4), jnp.int32), X, X), shared_argnums=(0, 1), behind="each")
    GATES.close("after")
    lanes.launches += 1
    version = tables.capture(lanes.forward, ["t"])["t"]
    issued = made.replay(lanes.forward, lanes.launches, (version, X, X), tables)
    lanes.schedule.wait(made.ticket(lanes.launches, name))
    GATES.await_reached("after")
    lanes.write(7)
    assert lanes.schedule.settle(60) is lands
    GATES.open("after")
    issued.result()
    lanes.schedule.synchronize()


@pytest.mark.slow
def test_a_ticket_belongs_to_the_launch_that_was_issued_last(lanes: Lanes, made) -> None:
    other = lanes.launches + 1
    with pytest.raises(
        FenceError, match=rf"marker after 'operation \d \(.*\) of stage 'read' .*: ticket of launch {other} asked for"
    ):
        made.ticket(other)
    lanes.issue(made)
    old = made.ticket(lanes.launches)
    lanes.issue(made).result()
    with pytest.raises(FenceError, match=f"ticket of launch {other} is stale"):
        lanes.schedule.wait(old)
    with pytest.raises(InputError, match="cut of 'fn': no shared array 'u'; there are: t"):
        made.ticket(lanes.launches, "u")
    with pytest.raises(InputError, match="pass the tables too"):
        made.replay(lanes.forward, 99, (lanes.tables.capture(lanes.forward, ["t"])["t"], X))


@pytest.mark.slow
def test_a_version_that_a_write_has_taken_is_refused() -> None:
    lanes = Lanes()
    try:
        made = cut(lambda t, x: t[0] + x, (X.reshape(1, 4).repeat(2, 0), X), shared_argnums=0)
        version = lanes.tables.capture(lanes.forward, ["t"])["t"]
        lanes.write(1)
        lanes.schedule.synchronize()
        with pytest.raises(DeadHandleError, match="launch 1, stage 'head': table 't' was captured as version 0"):
            made.replay(lanes.forward, 1, (version, X), lanes.tables).result()
    finally:
        lanes.backend.close()


@pytest.mark.slow
def test_the_marker_variant_tells_the_host_while_the_rest_still_runs() -> None:
    told = threading.Event()
    made = marked(fn, (X.reshape(1, 4).repeat(2, 0), X), told.set, shared_argnums=0)
    for position, expected in (("before", False), ("after", True)):
        told.clear()
        GATES.close(position)
        runner = threading.Thread(target=made, args=(X.reshape(1, 4).repeat(2, 0), X))
        runner.start()
        GATES.await_reached(position)
        assert told.is_set() is expected
        GATES.open(position)
        runner.join(60)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize(("held_at", "lands"), [("before", False), ("after", True)])
def test_with_a_gpu_the_head_runs_where_the_tables_are(held_at: str, lands: bool) -> None:
    lanes = Lanes("cuda")
    try:
        check_split(lanes, held_at, lands)
    finally:
        GATES.open_all()
        lanes.backend.close()


def check_split(lanes: Lanes, held_at: str, lands: bool) -> None:
    where = lanes.backend.devices
    made = cut(
        fn, (jax.ShapeDtypeStruct((2, 4), jnp.int32), X), shared_argnums=0, donate_argnums=1, order="hoist",
        device=where.compute, head_device=where.tables,
    )  # fmt: skip
    assert made.donation == {"x": "in place in the rest"}
    GATES.close(held_at)
    issued = made.replay(
        lanes.forward,
        1,
        (lanes.tables.capture(lanes.forward, ["t"])["t"], jax.device_put(np.arange(4, dtype=np.int32), where.compute)),
        lanes.tables,
    )
    lanes.schedule.wait(made.ticket(1))
    GATES.await_reached(held_at)
    lanes.tables.write(lanes.schedule, "t", np.arange(4, 8), np.full(4, 3, np.int32))
    assert lanes.schedule.settle(5) is lands
    GATES.open(held_at)
    assert issued.result().device == where.compute
    np.testing.assert_array_equal(issued.result(), np.ones(4))
    lanes.schedule.synchronize()
    assert lanes.tables.snapshot_to_host("t")[1, 0] == 3
