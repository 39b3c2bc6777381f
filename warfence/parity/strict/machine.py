"""Virtual time without threads: lanes are queues, and something runs only while the host blocks.

The machine is an adversary that keeps to the rules. Each time something has to run, it takes the item that hurts a wrong
fence most. `war`: every write that no wait holds back lands before the forward makes its next step. `raw`: the forward
makes every step that no wait holds back before the next write lands. It stops as soon as the host has what it
blocks for, so whatever may be late is late.

Because nothing else can happen, "would hang" is known, not guessed from a timer: then FenceError says where each lane
stands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from warfence.core.backend import FORWARD
from warfence.core.errors import FenceError, WarfenceError
from warfence.races.check.events import Event

ADVERSARIES = ("war", "raw")


def _nothing() -> None:
    pass


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to do on a lane. events: what the log says of it, once it is done: one event, and what it touches.

    ready: whether it can run now; holds: what the lane stands at until then; gate: the (gates, position) that this is.
    always: run after a failure of the lane too, so that nobody hangs on a record that never comes.
    """

    events: tuple[Event, ...]
    run: Callable[[], None] = _nothing
    ready: Callable[[], bool] = _always
    holds: str = ""
    gate: tuple[object, str] | None = None
    always: bool = False


class Queue:
    """The items of one lane. After a failure the rest is dropped, but for what must always run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.items: deque[Item] = deque()
        self.failure: Exception | None = None

    @property
    def can_move(self) -> bool:
        return bool(self.items) and (self.failure is not None or self.items[0].ready())

    def standing(self) -> str:
        """Where this lane stands, as a clause."""
        if not self.items:
            return f"lane '{self.name}' is idle"
        head = self.items[0]
        event = head.events[0]
        what = event.resource or event.stage or event.event
        return f"lane '{self.name}' stands at {head.holds or f'{event.kind} {what}'}"


class Machine:
    """All lanes of one backend, and their log."""

    def __init__(self, adversary: str) -> None:
        self.adversary = adversary
        self.queues: dict[str, Queue] = {}
        self.log: list[Event] = []
        self.steps: list[Event] = []  # the first event of each thing that was done: what virtual time counts
        self.named = 0  # events that have a name
        self.launch = 0  # issued last
        self.closed = False

    def queue(self, name: str) -> Queue:
        return self.queues.setdefault(name, Queue(name))

    def name(self, what: str) -> str:
        """A name of its own for what a log records on."""
        self.named += 1
        return f"{what} #{self.named}"

    def check_open(self) -> None:
        """FenceError after close()."""
        if self.closed:
            raise FenceError("backend strict was closed: make a new one, nothing can be used after close()")

    def check(self, queue: Queue) -> None:
        """Raise what made this lane fail, or that the backend was closed."""
        self.check_open()
        if queue.failure is not None:
            if isinstance(queue.failure, WarfenceError):
                raise queue.failure
            raise FenceError(f"lane '{queue.name}' failed: {queue.failure}") from queue.failure

    def enqueue(self, queue: Queue, item: Item) -> None:
        """Put an item on a lane. It does not run before the host blocks."""
        self.check(queue)
        queue.items.append(item)

    def drive(self, until: Callable[[], bool], what: str) -> None:
        """Run until the host has what it blocks for. FenceError when it would block for ever."""
        self.check_open()
        if not self.drive_as_far_as(until):
            where = "; ".join(queue.standing() for queue in self.queues.values())
            raise FenceError(f"{what} would block for ever: {where}. Open the gate, or enqueue the record, first")

    def drive_as_far_as(self, until: Callable[[], bool]) -> bool:
        """Run until it holds, or until nothing can move any more. Returns whether it holds."""
        self.check_open()
        while not until():
            queue = next((queue for queue in self._order() if queue.can_move), None)
            if queue is None:
                return False
            self._advance(queue)
        return True

    def _order(self) -> list[Queue]:
        """Who goes first when several lanes can move."""
        forward_last = self.adversary == "war"
        return sorted(self.queues.values(), key=lambda queue: (queue.name == FORWARD) is forward_last)

    def _advance(self, queue: Queue) -> None:
        item = queue.items.popleft()
        if queue.failure is not None and not item.always:
            return
        self.log += item.events
        self.steps.append(item.events[0])
        try:
            item.run()
        except Exception as error:
            queue.failure = error
