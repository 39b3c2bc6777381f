"""Worker lanes and host events: FIFO, CUDA's event semantics, and failures that hang nobody. Ordered by force, no sleeps."""

from __future__ import annotations

import threading

import pytest

from warfence.core.errors import FenceError, StageError
from warfence.core.fence import AtLeast, Ticket
from warfence.host.lanes import HostEvent, HostWord, WorkerLane


@pytest.fixture
def lane():
    made = WorkerLane("test")
    yield made
    made.close()


@pytest.fixture
def other():
    made = WorkerLane("other")
    yield made
    made.close()


def test_work_runs_in_order(lane: WorkerLane) -> None:
    seen: list[int] = []
    for i in range(100):
        lane.submit(lambda i=i: seen.append(i))
    lane.synchronize()
    assert seen == list(range(100))


def test_a_wait_binds_to_the_record_at_the_time_of_the_call(lane: WorkerLane) -> None:
    event = HostEvent()
    event.complete(event.arm(1))
    assert event.done()
    bound = event.bind()
    event.arm(2)  # recorded again, not reached
    assert event.reached(bound), "the earlier wait is over"
    assert not event.done(), "a wait called now would not be"


def test_a_later_record_that_is_reached_first_ends_no_earlier_wait() -> None:
    """Two lanes record one event, and the second one is quicker: a wait for the first record goes on."""
    event = HostEvent()
    first, second = event.arm(1), event.arm(2)
    event.complete(second)
    assert event.done()
    assert not event.reached(first)
    event.complete(first)
    assert event.reached(first)


def test_never_recorded_counts_as_complete_which_is_why_tickets_are_checked(lane: WorkerLane) -> None:
    event = HostEvent()
    assert event.done()
    with pytest.raises(FenceError, match="never recorded"):
        lane.wait(Ticket(1, event))


def test_a_stale_ticket_is_refused_at_the_wait(lane: WorkerLane) -> None:
    event = HostEvent()
    event.arm(1)
    ticket = Ticket(1, event)
    event.arm(2)
    with pytest.raises(FenceError, match="stale"):
        lane.wait(ticket)


def test_settle_tells_standing_from_idle(lane: WorkerLane, other: WorkerLane) -> None:
    hold, written = threading.Event(), []
    other.submit(hold.wait)
    lane.wait(other.record(1))
    lane.submit(lambda: written.append(1))
    assert lane.settle(0.0) is False, "it stands behind the other lane"
    assert written == []
    hold.set()
    lane.synchronize()
    assert written == [1]
    assert lane.settle(0.0) is True


def test_wait_lane_covers_what_was_enqueued_so_far_and_no_more(lane: WorkerLane, other: WorkerLane) -> None:
    first, second = threading.Event(), threading.Event()
    other.submit(first.wait)
    lane.wait_lane(other)
    other.submit(second.wait)
    lane.submit(lambda: None)
    assert lane.settle(0.0) is False
    first.set()
    lane.synchronize()
    second.set()


def test_a_failure_reaches_the_next_caller_and_hangs_nobody(lane: WorkerLane, other: WorkerLane) -> None:
    go = threading.Event()

    def fail() -> None:
        go.wait()
        raise StageError(7, "layer.3", ValueError("boom"))

    lane.submit(fail)
    ticket = lane.record(7)
    other.wait(ticket)
    ran: list[int] = []
    lane.submit(lambda: ran.append(1))
    go.set()
    other.synchronize()  # its wait was let go although the lane failed
    with pytest.raises(StageError, match=r"launch 7, stage 'layer\.3': ValueError: boom"):
        lane.synchronize()
    with pytest.raises(StageError):
        lane.record(8)
    assert ran == [], "a failed lane runs no more work"


def test_another_failure_names_the_lane(lane: WorkerLane) -> None:
    lane.submit(lambda: 1 / 0)
    with pytest.raises(FenceError, match="lane 'test' failed: division by zero"):
        lane.synchronize()


def test_close_twice_is_fine() -> None:
    lane = WorkerLane("closing")
    lane.close()
    lane.close()


def test_a_lane_waits_for_a_value_of_a_word_also_before_its_launch(lane: WorkerLane) -> None:
    word, seen = HostWord("decode", 2**32 - 1), list[int]()
    lane.wait(Ticket(5, AtLeast(word, 1, 5)))  # two launches ahead, across the end of the counter
    lane.submit(lambda: seen.append(word.count()))
    assert not lane.settle(0)
    word.raise_to(2**32)
    assert not lane.settle(0)
    word.raise_to(1)
    lane.synchronize()
    assert seen == [1]
    word.raise_to(0)  # late, of a launch before
    assert word.count() == 1


def test_a_launch_that_never_comes_ends_with_a_sentence(lane: WorkerLane) -> None:
    word = HostWord("decode", watchdog_s=0.01)
    lane.wait(Ticket(5, AtLeast(word, 3, 5)))
    with pytest.raises(
        FenceError, match=r"launch number 3 of 'decode' stood for 0\.01 s; its word says that 0 launches"
    ):
        lane.synchronize()
