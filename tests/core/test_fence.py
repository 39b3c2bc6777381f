"""Tickets, mailbox and barrier, on lanes that only write down what they are asked."""

from __future__ import annotations

import pytest

from warfence.core.backend import Marker
from warfence.core.errors import FenceError
from warfence.core.fence import Mailbox, Ticket, WarBarrier, reached
from warfence.core.modes import FenceMode


class Source:
    def __init__(self, launch: int | None = None) -> None:
        self.launch = launch
        self.synchronized = False

    def recorded_for(self) -> int | None:
        return self.launch

    def done(self) -> bool:
        return True

    def synchronize(self) -> None:
        self.synchronized = True


class NotingLane:
    def __init__(self, name: str) -> None:
        self.name = name
        self.notes: list[str] = []
        self.records: list[Source] = []

    def record(self, launch: int) -> Ticket:
        self.notes.append(f"record {launch}")
        self.records.append(Source(launch))
        return Ticket(launch, self.records[-1])

    def wait(self, ticket: Ticket) -> None:
        self.notes.append(f"wait ticket {ticket.launch}")

    def wait_lane(self, other: NotingLane) -> None:
        self.notes.append(f"wait lane {other.name}")


@pytest.fixture
def lanes() -> tuple[NotingLane, NotingLane]:
    return NotingLane("schedule"), NotingLane("forward")


def ticket(launch: int) -> Ticket:
    return Ticket(launch, Source(launch))


def test_fine_waits_for_the_ticket(lanes) -> None:
    schedule, forward = lanes
    box, barrier = Mailbox("target"), WarBarrier()
    box.publish(ticket(3))
    barrier.apply(3, box, schedule, forward)
    assert schedule.notes == ["wait ticket 3"]
    assert (barrier.counts.fine, barrier.counts.coarse) == (1, 0)


def test_nothing_published_means_coarse(lanes) -> None:
    schedule, forward = lanes
    barrier = WarBarrier()
    barrier.apply(1, Mailbox("target"), schedule, forward)
    assert schedule.notes == ["wait lane forward"]


@pytest.mark.parametrize("mode", [FenceMode.FINE, FenceMode.COARSE, FenceMode.OFF])
def test_every_barrier_empties_the_mailbox(lanes, mode: FenceMode) -> None:
    """Law 7; forced coarse, the ticket is taken and dropped."""
    box = Mailbox("target")
    box.publish(ticket(1))
    WarBarrier(mode).apply(1, box, *lanes)
    assert box.take() is None
    expected = {FenceMode.FINE: ["wait ticket 1"], FenceMode.COARSE: ["wait lane forward"], FenceMode.OFF: []}
    assert lanes[0].notes == expected[mode]


@pytest.mark.parametrize("published", [True, False])
def test_the_self_fence_blocks_the_host_on_a_record_of_the_forward_lane(lanes, published: bool) -> None:
    """The older way: the ticket is taken and dropped, and the schedule lane waits for nothing, since the host did."""
    schedule, forward = lanes
    box, barrier = Mailbox("target"), WarBarrier(FenceMode.SELF)
    if published:
        box.publish(ticket(4))
    barrier.apply(4, box, schedule, forward)
    assert forward.notes == ["record 4"]
    assert [source.synchronized for source in forward.records] == [True]
    assert schedule.notes == []
    assert box.take() is None
    counts = barrier.counts
    assert (counts.host, counts.fine, counts.coarse, counts.off) == (1, 0, 0, 0)


def test_the_self_fence_never_looks_at_the_ticket_that_it_drops(lanes) -> None:
    """A foreign one would be refused by the fine fence."""
    box = Mailbox("target")
    box.publish(ticket(1))
    WarBarrier(FenceMode.SELF).apply(2, box, *lanes)
    assert lanes[1].notes == ["record 2"]


@pytest.mark.parametrize("mode", [FenceMode.FINE, FenceMode.COARSE, FenceMode.OFF])
def test_no_other_fence_blocks_the_host(lanes, mode: FenceMode) -> None:
    box = Mailbox("target")
    source = Source(1)
    box.publish(Ticket(1, source))
    WarBarrier(mode).apply(1, box, *lanes)
    assert not source.synchronized
    assert lanes[1].notes == []


def test_a_ticket_of_another_launch_is_refused(lanes) -> None:
    box = Mailbox("target")
    box.publish(ticket(1))
    with pytest.raises(
        FenceError, match=r"barrier of launch 2 found the ticket of launch 1 in the mailbox of 'target'"
    ):
        WarBarrier().apply(2, box, *lanes)
    assert lanes[0].notes == []


def test_a_never_recorded_ticket_is_refused() -> None:
    with pytest.raises(FenceError, match="launch 4 was never recorded"):
        Mailbox("target").publish(Ticket(4, Source(None)))


def test_a_ticket_whose_source_was_recorded_again_is_refused(lanes) -> None:
    box, source = Mailbox("target"), Source(1)
    box.publish(Ticket(1, source))
    source.launch = 2
    with pytest.raises(FenceError, match="launch 1 is stale: its source now holds the record of launch 2"):
        WarBarrier().apply(1, box, *lanes)


def test_one_publisher_a_step() -> None:
    box = Mailbox("target")
    box.publish(ticket(1))
    with pytest.raises(FenceError, match="still holds the ticket of launch 1 while launch 2 publishes"):
        box.publish(ticket(2))


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (0, 0, "still holds a ticket that belongs to no launch while another one is published"),
        (3, 3, "still holds the ticket of launch 3 while another one is published"),
        (0, 2, "still holds a ticket that belongs to no launch while launch 2 publishes"),
    ],
)
def test_two_publishers_are_told_whose_ticket_is_there(first: int, second: int, said: str) -> None:
    box = Mailbox("target")
    box.publish(ticket(first))
    with pytest.raises(FenceError, match=said):
        box.publish(ticket(second))


def test_a_marker_has_no_ticket_before_its_launch_was_issued() -> None:
    """Law 5."""
    marker = Marker("swa_translate")
    with pytest.raises(FenceError, match="ticket of launch 1 asked for, last issued launch is None"):
        marker.ticket(1)
    marker.issued(1, Source(1))
    assert marker.ticket(1).launch == 1
    with pytest.raises(FenceError, match="ticket of launch 2 asked for, last issued launch is 1"):
        marker.ticket(2)


class Counter:
    """A word that the test sets."""

    def __init__(self, count: int = 0) -> None:
        self.value = count

    def count(self) -> int:
        return self.value

    def await_count(self, value: int) -> None:
        assert reached(self.value, value)


def test_by_value_a_ticket_is_there_before_its_launch_and_never_stale() -> None:
    word = Counter()
    marker = Marker("page_table", word)
    early = marker.ticket(7)  # not issued yet
    early.check()
    assert not early.source.done()
    marker.issued(7)
    word.value = 1
    marker.issued(8)
    assert early.source.done()
    assert not marker.ticket(8).source.done()
    early.check()  # though launch 8 was issued since
    assert marker.ticket(9).source != marker.ticket(8).source


def test_by_value_a_ticket_belongs_to_one_launch_too() -> None:
    marker = Marker("page_table", Counter())
    marker.issued(7)
    with pytest.raises(FenceError, match="holds the record of launch 7"):
        Ticket(8, marker.ticket(7).source).check()
    marker.issued(8)
    with pytest.raises(FenceError, match="launch 7 asked for, last issued launch is 8"):
        marker.ticket(7)


@pytest.mark.parametrize("first", [0, 2**32 - 2, 2**31 - 1])
def test_a_word_wraps_round(first: int) -> None:
    word = Counter(first)
    marker = Marker("page_table", word, first)
    tickets = []
    for launch in range(1, 6):
        marker.issued(launch)
        tickets.append(marker.ticket(launch))
    for done in range(6):
        assert [t.source.done() for t in tickets] == [i < done for i in range(5)]
        word.value = (word.value + 1) % 2**32
