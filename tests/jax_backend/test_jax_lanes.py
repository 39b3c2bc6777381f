"""Tickets, waits and settling, with the writes of a table as the work. What holds a lane is a promise the test keeps."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from warfence.core.backend import FORWARD, SCHEDULE, ArraySpec
from warfence.core.errors import FenceError
from warfence.core.fence import Ticket
from warfence.host.lanes import HostEvent
from warfence_jax.backend import JaxBackend
from warfence_jax.lanes import JaxLane
from warfence_jax.tokens import Record

ONE = np.array([1], np.int32)


SPECS = {"t": ArraySpec((2, 4))}


@pytest.fixture(scope="module", params=["donated", "aliased"])
def shared(request: pytest.FixtureRequest):
    made = JaxBackend(tables=request.param)
    made.made = made.tables(SPECS)
    yield made
    made.close()


@pytest.fixture
def backend(shared: JaxBackend) -> JaxBackend:
    """Idle lanes and a zeroed cell, on a backend that tests leave unharmed."""
    shared.made.write(shared.lane(SCHEDULE), "t", ONE, ONE - 1)
    for name in (SCHEDULE, FORWARD):
        shared.lane(name).synchronize()
    return shared


class Hold:
    """Work on a lane that stands until it is let go."""

    def __init__(self, backend: JaxBackend, lane: JaxLane) -> None:
        self._go, self._started = threading.Event(), threading.Event()
        lane.enqueue(backend.devices.tables, self._work)
        assert self._started.wait(60)

    def _work(self, order: object, wait: object) -> None:
        self._started.set()
        assert self._go.wait(60)

    def let_go(self) -> None:
        self._go.set()


def test_a_write_waits_for_the_ticket_and_the_caller_for_nothing(backend: JaxBackend) -> None:
    schedule, forward = backend.lane(SCHEDULE), backend.lane(FORWARD)
    hold = Hold(backend, forward)
    ticket = forward.record(4)
    assert (ticket.source.recorded_for(), ticket.source.done()) == (4, False)
    schedule.wait(ticket)
    backend.made.write(schedule, "t", ONE, ONE)
    assert schedule.settle(60) is False  # known to stand: the bound is not used
    behind = schedule.record(5)
    hold.let_go()
    assert backend.made.snapshot_to_host("t")[0, 1] == 1
    behind.source.synchronize()
    assert ticket.source.done()
    assert behind.source.done()
    assert schedule.settle(60) is True


def test_a_wait_with_no_work_behind_it_is_a_wait(backend: JaxBackend) -> None:
    schedule, forward = backend.lane(SCHEDULE), backend.lane(FORWARD)
    hold = Hold(backend, forward)
    schedule.wait_lane(forward)
    assert schedule.settle(60) is False
    ticket = schedule.record(1)  # all enqueued so far: the wait too
    assert not ticket.source.done()
    hold.let_go()
    ticket.source.synchronize()
    assert schedule.settle(60) is True


def test_several_waits_are_joined(backend: JaxBackend) -> None:
    schedule = backend.lane(SCHEDULE)
    others = [backend.lane(name) for name in ("a", "b", "c")]
    holds = [Hold(backend, lane) for lane in others]
    for lane in others:
        schedule.wait_lane(lane)
    backend.made.write(schedule, "t", ONE, ONE)
    for hold in holds:
        assert schedule.settle(60) is False
        hold.let_go()
    assert backend.made.snapshot_to_host("t")[0, 1] == 1


def test_a_wait_binds_at_the_call(backend: JaxBackend) -> None:
    schedule, forward = backend.lane(SCHEDULE), backend.lane(FORWARD)
    schedule.wait_lane(forward)  # nothing is there yet
    hold = Hold(backend, forward)
    backend.made.write(schedule, "t", ONE, ONE)
    assert schedule.settle(60) is True
    hold.let_go()


def test_bad_tickets_are_refused(backend: JaxBackend) -> None:
    schedule, forward = backend.lane(SCHEDULE), backend.lane(FORWARD)
    with pytest.raises(FenceError, match="ticket of launch 3 was never recorded"):
        schedule.wait(Ticket(3, Record()))
    source = Record()
    source.arm(4, forward.newest())
    with pytest.raises(FenceError, match="ticket of launch 3 is stale: its source now holds the record of launch 4"):
        schedule.wait(Ticket(3, source))
    foreign = HostEvent()
    foreign.arm(3)
    with pytest.raises(
        FenceError, match=r"ticket of launch 3 was recorded on a HostEvent, .* a foreign ticket is refused"
    ):
        schedule.wait(Ticket(3, foreign))
    schedule.wait(Ticket(4, source))


def test_a_failure_reaches_the_next_caller_and_nobody_who_waits_hangs() -> None:
    backend = JaxBackend(tables="aliased")
    backend.made = backend.tables(SPECS)
    schedule, forward = backend.lane(SCHEDULE), backend.lane(FORWARD)
    hold = Hold(backend, forward)

    def fail(order: object, wait: object) -> None:
        raise ArithmeticError("out of numbers")

    forward.enqueue(backend.devices.tables, fail)
    after = forward.record(1)
    schedule.wait(after)
    backend.made.write(schedule, "t", ONE, ONE)
    hold.let_go()
    assert backend.made.snapshot_to_host("t")[0, 1] == 1
    for call in (forward.synchronize, lambda: forward.record(2), lambda: forward.wait(after)):
        with pytest.raises(FenceError, match="lane 'forward' failed: out of numbers"):
            call()
    backend.close()
    backend.close()
    with pytest.raises(FenceError, match="lane 'schedule' is closed"):
        backend.made.write(schedule, "t", ONE, ONE)
