"""A lane that is a worker thread, and events with CUDA's semantics. Frameworks without streams build on this.

The semantics, as CUDA has them (each is a test): recording again overwrites; a wait takes the event's state at the time
of the CALL; an event that was never recorded counts as complete. The last one is a trap, so `Ticket.check` refuses it
above.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from warfence.core.errors import FenceError, StageError
from warfence.core.fence import WORD, Ticket, TicketSource, reached
from warfence.core.gates import WATCHDOG_S

Work = Callable[[], None]
JOIN_S = 60.0
POLL_S = 20e-6  # between two looks at a word of memory


class HostEvent:
    """An event between worker threads. `arm` is the record call on the host; `complete` is the lane reaching it.

    Each record is reached by itself: one that another lane reaches earlier says nothing about those before it.
    """

    __slots__ = ("_changed", "_launch", "_open", "_recorded")

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._recorded = 0
        self._open: set[int] = set()  # generations that are recorded and not yet reached
        self._launch: int | None = None

    def arm(self, launch: int) -> int:
        """Record again, on behalf of `launch`. Returns the generation, to be completed when the lane gets there."""
        with self._changed:
            self._recorded += 1
            self._open.add(self._recorded)
            self._launch = launch
            return self._recorded

    def complete(self, generation: int) -> None:
        """The lane reached the record of this generation."""
        with self._changed:
            self._open.discard(generation)
            self._changed.notify_all()

    def bind(self) -> int:
        """The generation that a wait called now waits for; 0 when never recorded."""
        return self._recorded

    def reached(self, generation: int) -> bool:
        return generation not in self._open

    def await_generation(self, generation: int, timeout_s: float | None = None) -> bool:
        """Block this thread until the generation is complete; False after the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: generation not in self._open, timeout_s)

    # TicketSource

    def recorded_for(self) -> int | None:
        return self._launch

    def done(self) -> bool:
        return self.reached(self._recorded)

    def synchronize(self) -> None:
        self.await_generation(self.bind())


class HostWord:
    """A counter and a condition: the word of tickets by value where forwards run on worker threads (`Word`).

    owner: whose launches it counts, for messages. The forward's thread adds, any thread waits.
    """

    __slots__ = ("_changed", "_count", "_owner", "_watchdog_s")

    def __init__(self, owner: str, count: int = 0, watchdog_s: float = WATCHDOG_S) -> None:
        self._changed = threading.Condition()
        self._count = count % WORD
        self._owner, self._watchdog_s = owner, watchdog_s

    def count(self) -> int:
        return self._count

    def raise_to(self, value: int) -> None:
        """The reads of the launch of this value are over. Never goes back."""
        with self._changed:
            if not reached(self._count, value):
                self._count = value % WORD
            self._changed.notify_all()

    def await_count(self, value: int) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: reached(self._count, value), self._watchdog_s):
                raise never_came(self._owner, self._count, value, self._watchdog_s)


def await_word(count: Callable[[], int], owner: str, value: int, watchdog_s: float) -> None:
    """Block this thread until a word that is only memory has the value. FenceError once the watchdog's time is over."""
    end = time.monotonic() + watchdog_s
    while not reached(seen := count(), value):
        if time.monotonic() > end:
            raise never_came(owner, seen, value, watchdog_s)
        time.sleep(POLL_S)


def never_came(owner: str, count: int, value: int, waited_s: float) -> FenceError:
    """The error of a wait by value whose launch never came."""
    return FenceError(
        f"a wait for launch number {value} of '{owner}' stood for {waited_s:g} s; its word says that {count} launches have "
        f"read: the launch was never issued, or is held; issue it, or wait for no launch that will not come"
    )


class WorkerLane:
    """A FIFO of work on one thread.

    After a failure the lane runs no more work, but still completes its events, so that nobody who waits for it hangs;
    the failure is raised to the next caller (`check`).
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.failure: BaseException | None = None
        self._queue: SimpleQueue[tuple[Work, bool] | None] = SimpleQueue()
        self._changed = threading.Condition()
        self._submitted = 0
        self._finished = 0
        self._standing: Callable[[], bool] | None = None  # where the thread waits: a test whether that is reached
        self._thread = threading.Thread(target=self._run, name=f"warfence-{name}", daemon=True)
        self._thread.start()

    def submit(self, work: Work, *, always: bool = False) -> None:
        """Enqueue work and return at once. `always`: run it after a failure too (completing events)."""
        self._submitted += 1  # only host threads that own this lane submit; the thread reads under the lock
        self._queue.put((work, always))

    def check(self) -> None:
        """Raise the failure of this lane, if there was one."""
        if self.failure is not None:
            if isinstance(self.failure, StageError):
                raise self.failure
            raise FenceError(f"lane '{self.name}' failed: {self.failure}") from self.failure

    def wait(self, ticket: Ticket) -> None:
        self.check()
        ticket.check()
        self.wait_source(ticket.source)

    def wait_source(self, source: TicketSource) -> None:
        """Later work waits for the record that the source holds now."""
        if isinstance(source, HostEvent):
            generation = source.bind()
            self.submit(
                lambda: self.stand(lambda: source.reached(generation), lambda: source.await_generation(generation))
            )
        else:  # a value: bound to its launch, whenever it is asked
            self.submit(lambda: self.stand(source.done, source.synchronize))

    def wait_lane(self, other: WorkerLane) -> None:
        self.check()
        self.wait_source(other.record(0).source)

    def record(self, launch: int) -> Ticket:
        self.check()
        event = HostEvent()
        generation = event.arm(launch)
        self.submit(lambda: event.complete(generation), always=True)
        return Ticket(launch, event)

    def settle(self, bound_s: float) -> bool:
        """Exact here: the lane is idle (True), or its thread stands at a wait (False). The bound is not used."""

        def settled() -> bool:
            standing = self._standing
            return self._finished == self._submitted or (standing is not None and not standing())

        with self._changed:
            if not self._changed.wait_for(settled, JOIN_S):
                raise FenceError(f"lane '{self.name}' neither finished nor stood at a wait within {JOIN_S} s")
            return self._finished == self._submitted

    def synchronize(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._finished == self._submitted)
        self.check()

    def close(self) -> None:
        """Let the thread finish what is enqueued and end. Safe to call twice."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(JOIN_S)

    # -- on the lane's thread

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, always = item
            if self.failure is None or always:
                try:
                    work()
                except BaseException as error:
                    self.failure = self.failure or error
            with self._changed:
                self._finished += 1
                self._changed.notify_all()

    def stand(self, reached: Callable[[], bool], block: Callable[[], object]) -> None:
        """Called by work of this lane: stand at a wait, and let `settle` know. `block` returns once it is reached."""
        if reached():
            return
        with self._changed:
            self._standing = reached
            self._changed.notify_all()
        try:
            block()
        finally:
            with self._changed:
                self._standing = None
