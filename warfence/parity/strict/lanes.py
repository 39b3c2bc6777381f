"""Lanes and events of the strict backend. Events have CUDA's semantics: a wait takes the record that is there at the call."""

from __future__ import annotations

from collections.abc import Callable

from warfence.core.backend import Lane
from warfence.core.errors import FenceError
from warfence.core.fence import WORD, AtLeast, Ticket, reached
from warfence.parity.strict.machine import Item, Machine, Queue
from warfence.races.check.events import Event


class StrictEvent:
    """A ticket source. Recording again overwrites; each record has a generation."""

    def __init__(self, machine: Machine, what: str) -> None:
        self.machine = machine
        self.name = machine.name(what)
        self._recorded = 0
        self._open: set[int] = set()  # generations that are recorded and not yet reached
        self._launch: int | None = None

    def arm(self, launch: int) -> int:
        """The host records on behalf of `launch`. Returns the generation, which the lane completes when it is there."""
        self._recorded, self._launch = self._recorded + 1, launch
        self._open.add(self._recorded)
        return self._recorded

    def complete(self, generation: int) -> None:
        """The lane is there."""
        self._open.discard(generation)

    def bind(self) -> int:
        """The generation that a wait called now waits for."""
        return self._recorded

    def reached(self, generation: int) -> bool:
        return generation not in self._open

    # TicketSource

    def recorded_for(self) -> int | None:
        return self._launch

    def done(self) -> bool:
        return self.reached(self._recorded)

    def synchronize(self) -> None:
        generation = self._recorded
        self.machine.drive(lambda: self.reached(generation), f"synchronize() on the ticket of launch {self._launch}")


class StrictWord:
    """A counter that a forward increments behind its last shared read (`warfence.core.fence.Word`)."""

    def __init__(self, machine: Machine, count: int) -> None:
        self.machine = machine
        self.name = machine.name("word")
        self._count = self._first = count % WORD

    def increment(self) -> None:
        """The forward lane is there."""
        self._count = (self._count + 1) % WORD

    def count(self) -> int:
        return self._count

    def number_of(self, value: int) -> int:
        """Which increment makes it this value; counted from 1."""
        return (value - self._first) % WORD

    def await_count(self, value: int) -> None:
        self.machine.drive(lambda: reached(self._count, value), f"a wait for word >= {value} (it is {self._count})")


class StrictLane:
    """Implements `warfence.core.backend.Lane`."""

    def __init__(self, name: str, machine: Machine) -> None:
        self.name = name
        self.machine = machine
        self.queue: Queue = machine.queue(name)

    def wait(self, ticket: Ticket) -> None:
        self.machine.check(self.queue)
        source = ticket.source
        mine = source.word if isinstance(source, AtLeast) else source
        if not isinstance(mine, StrictEvent | StrictWord) or mine.machine is not self.machine:
            raise FenceError(
                f"lane '{self.name}' was to wait on the ticket of launch {ticket.launch}, which is foreign: it was "
                f"recorded on {type(mine).__name__} of another backend; wait on tickets of this backend's lanes only"
            )
        ticket.check()
        name = f"the ticket of launch {ticket.launch}"
        if isinstance(source, StrictEvent):
            self._wait(source, ticket.launch, name)
        elif isinstance(source, AtLeast) and isinstance(mine, StrictWord):
            self._stand(ticket.launch, mine.name, mine.number_of(source.value), name, source.done)

    def wait_lane(self, other: Lane) -> None:
        self.machine.check(self.queue)
        if not isinstance(other, StrictLane) or other.machine is not self.machine:
            raise FenceError(
                f"lane '{self.name}' was to wait for lane '{other.name}' of another backend; lanes order only each other"
            )
        if other is self:
            return  # a lane is in order with itself
        self._wait(other._record(0, f"{other.name} for {self.name}"), 0, f"lane '{other.name}'")

    def record(self, launch: int) -> Ticket:
        return Ticket(launch, self._record(launch, f"ticket of {self.name}"))

    def settle(self, bound_s: float) -> bool:
        """Exact: drives until this lane is idle (True) or nothing can move any more (False). The bound is not used."""
        return self.machine.drive_as_far_as(lambda: not self.queue.items)

    def synchronize(self) -> None:
        self.machine.drive(lambda: not self.queue.items, f"synchronize() on lane '{self.name}'")
        self.machine.check(self.queue)

    def _record(self, launch: int, what: str) -> StrictEvent:
        event = StrictEvent(self.machine, what)
        generation = event.arm(launch)
        record = Event("record", self.name, launch, event=event.name, generation=generation)
        self.machine.enqueue(self.queue, Item((record,), lambda: event.complete(generation), always=True))
        return event

    def _wait(self, event: StrictEvent, launch: int, name: str) -> None:
        generation = event.bind()
        self._stand(launch, event.name, generation, name, lambda: event.reached(generation))

    def _stand(self, launch: int, event: str, number: int, what: str, ready: Callable[[], bool]) -> None:
        wait = Event("await", self.name, launch, event=event, generation=number)  # bound to one record at the call
        self.machine.enqueue(self.queue, Item((wait,), ready=ready, holds=f"a wait for {what}"))
