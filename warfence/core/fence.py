"""Lanes, tickets, the one-slot mailbox, and the WAR barrier.

A ticket is the read-done promise of ONE launch. By event it is the record of an event, which the next launch overwrites; by
value it is "word >= value", with a word that counts launches whose shared reads are over: never stale, and legal to wait for
before its launch. The runner of the last reading phase publishes the ticket in its mailbox; the barrier, right after each
launch, empties the mailbox and makes the schedule lane wait: on the ticket (fine), or with no ticket on the whole forward lane
(coarse). The host never blocks here; only in the older way, the self-fence, it does.

Prior art: sgl-project/sglang #26380 (whole forward), #28363 (event before replay), #33587 (node in the graph), #31687
(the barrier stands before result processing), #29556 (which did away with a self-fence of one algorithm).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, Self

from warfence.core.errors import FenceError
from warfence.core.modes import FenceMode


class TicketSource(Protocol):
    """What a ticket was recorded on: a fresh event, the marker inside a captured forward, or a value of a word (`AtLeast`)."""

    def recorded_for(self) -> int | None:
        """The launch whose record this source now holds; None when nothing was ever recorded on it."""
        ...

    def done(self) -> bool:
        """True when the recorded point has been reached on the device. Never blocks."""
        ...

    def synchronize(self) -> None:
        """Block the calling host thread until the recorded point is reached. Not for the hot path of a step."""
        ...


WORD = 1 << 32  # a word is of 32 bits and wraps round


def reached(word: int, value: int) -> bool:
    """word >= value on a counter that wraps round after 2**32: right while the two are less than 2**31 launches apart."""
    return (word - value) % WORD < WORD // 2


class Word(Protocol):
    """A counter in memory, incremented behind the last shared read of each launch of one captured forward."""

    def count(self) -> int:
        """What it holds now, 0 to 2**32 - 1. Never blocks."""
        ...

    def await_count(self, value: int) -> None:
        """Block this host thread until `reached(count(), value)`. FenceError once the watchdog's time is over."""
        ...


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A ticket source by value: "word >= value". It belongs to `launch` for ever, so it is never stale; and as nothing is
    recorded, it may be waited for before that launch is issued."""

    word: Word
    value: int
    launch: int

    def recorded_for(self) -> int | None:
        return self.launch

    def done(self) -> bool:
        return reached(self.word.count(), self.value)

    def synchronize(self) -> None:
        self.word.await_count(self.value)


@dataclass(frozen=True, slots=True)
class Ticket:
    """The read-done promise of one launch. Legal to wait on only while its source still holds this launch's record."""

    launch: int
    source: TicketSource

    def check(self) -> None:
        """Raise FenceError when the record is missing or belongs to another launch (law 4)."""
        seen = self.source.recorded_for()
        if seen is None:
            raise FenceError(
                f"ticket of launch {self.launch} was never recorded: a wait on it would pass at once and protect "
                f"nothing; publish it only after its launch was issued"
            )
        if seen != self.launch:
            raise FenceError(
                f"ticket of launch {self.launch} is stale: its source now holds the record of launch {seen}; "
                f"take each ticket at the barrier of its own launch"
            )


class Lane(Protocol):
    """An ordered queue of device work. Work enqueued on one lane runs in order; lanes overlap unless told otherwise."""

    name: str

    def wait(self, ticket: Ticket) -> None:
        """Later work of this lane runs after the ticket's point. Binds at the call; a bad ticket is refused (law 4)."""
        ...

    def wait_lane(self, other: Self) -> None:
        """Later work of this lane runs after all that was enqueued so far on `other`, a lane of the same backend."""
        ...

    def record(self, launch: int) -> Ticket:
        """A ticket for all that was enqueued on this lane so far."""
        ...

    def settle(self, bound_s: float) -> bool:
        """Block the host until this lane is idle (True), or known to stand at a wait, or `bound_s` is over (False).

        `bound_s` counts only where the runtime alone knows what blocks. For tests and forced orders.
        """
        ...

    def synchronize(self) -> None:
        """Block the host until all enqueued work is done. Not for the hot path of a step."""
        ...


class Mailbox:
    """One slot, owned by the runner of the last shared-reading phase of a step."""

    __slots__ = ("_ticket", "owner")

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._ticket: Ticket | None = None

    def publish(self, ticket: Ticket) -> None:
        """Leave the ticket of the launch just issued. A second publisher before the barrier is an error."""
        if self._ticket is not None:
            old = self._ticket.launch
            held = f"the ticket of launch {old}" if old else "a ticket that belongs to no launch"
            again = f"launch {ticket.launch} publishes" if ticket.launch != old else "another one is published"
            raise FenceError(
                f"mailbox of '{self.owner}' still holds {held} while {again}: apply the barrier after each launch, and let "
                f"one phase publish per step"
            )
        ticket.check()
        self._ticket = ticket

    def take(self) -> Ticket | None:
        """Empty the slot and return what it held."""
        ticket, self._ticket = self._ticket, None
        return ticket

    def clear(self) -> None:
        """Drop whatever is there: a launch failed, or the owner of this step is another runner."""
        self._ticket = None


@dataclass(slots=True)
class BarrierCounts:
    """How often the barrier was fine, coarse, (fence off) skipped, or blocked the host (self-fence)."""

    fine: int = 0
    coarse: int = 0
    off: int = 0
    host: int = 0


@dataclass(slots=True)
class WarBarrier:
    """Makes the schedule lane wait for the last shared read of the launch that was just issued."""

    mode: FenceMode = FenceMode.FINE
    counts: BarrierCounts = field(default_factory=BarrierCounts)

    def apply(self, launch: int, mailbox: Mailbox, schedule: Lane, forward: Lane) -> None:
        """Device-side only: returns at once, but for the self-fence, whose flaw is that it does not. The mailbox is empty
        afterwards in every mode (law 7).

        Raises FenceError when the ticket found is not the ticket of `launch` (law 4).
        """
        ticket = mailbox.take()
        if self.mode is FenceMode.OFF:
            self.counts.off += 1
            return
        if self.mode is FenceMode.SELF:
            forward.record(launch).source.synchronize()
            self.counts.host += 1
            return
        if ticket is None or self.mode is FenceMode.COARSE:
            schedule.wait_lane(forward)
            self.counts.coarse += 1
            return
        if ticket.launch != launch:
            raise FenceError(
                f"barrier of launch {launch} found the ticket of launch {ticket.launch} in the mailbox of "
                f"'{mailbox.owner}': a ticket belongs to one launch, so this one is refused"
            )
        ticket.check()
        schedule.wait(ticket)
        self.counts.fine += 1
