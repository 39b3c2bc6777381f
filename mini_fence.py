"""A write-after-read fence in one file: two lanes, a table, a race, and the fence that waits for the last read.

`python mini_fence.py` tells the story in a second. Standard library and numpy; nothing of warfence is imported, and nothing
imports this. What it leaves out: a real model, real devices, and most ways to be wrong. Those are the rest of the house.
"""

import queue
import threading
from collections.abc import Callable
from functools import partial

import numpy as np

BOOK = "the cat sat on the mat and slept. a dog ran to the gate and barked. "
CAT, DOG = BOOK[:26], BOOK[34:60]  # two prompts; row 0 is the cat's, and then it is given to the dog
LINE = 32  # slots of a row


class Lane:
    """An ordered queue of work on a thread of its own. Whoever enqueues goes on at once: that is a CUDA stream."""

    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._left = 0  # work not done yet
        self._stands_at: threading.Event | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def submit(self, work: Callable[[], object]) -> None:
        with self._changed:
            self._left += 1
        self._todo.put(work)

    def record(self) -> threading.Event:
        """An event that is set when the lane gets here."""
        event = threading.Event()
        self.submit(event.set)
        return event

    def wait(self, event: threading.Event) -> None:
        """What is enqueued from here on runs after the event. The caller does not wait; the lane does."""

        def stand() -> None:
            self._note(event)
            event.wait()
            self._note(None)

        self.submit(stand)

    def settle(self) -> bool:
        """Block until nothing moves here: True when all is done, False when the lane stands at a wait."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._left or (self._stands_at is not None and not self._stands_at.is_set())
            )
            return not self._left

    def _note(self, event: threading.Event | None, done: int = 0) -> None:
        with self._changed:
            self._stands_at, self._left = event, self._left - done
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            self._todo.get()()
            self._note(None, done=1)


class Server:
    """The memory that scheduler and forward share: which slots hold which request's text."""

    def __init__(self) -> None:
        self.req_to_token = np.arange(LINE)[None].copy()  # [1 row, LINE]: slot of each position; the SHARED TABLE
        self.kv = np.array(list(CAT.ljust(LINE) + DOG.ljust(LINE)))  # [2 * LINE] characters; slots 0.. cat, LINE.. dog

    def give_row_to_the_dog(self) -> None:
        """What a scheduler does when a request ends: its row goes to the next one."""
        self.req_to_token[0] = np.arange(LINE, 2 * LINE)


class Forward:
    """One captured forward: stages in order, each with a gate behind it, and a marker behind one of them, if planted.

    The model is a book: it says what follows the text that it is shown.
    """

    stages = ("load_batch", "page_table", "layer.0", "layer.1", "sample")

    def __init__(self, server: Server, reads_in: str, marker_after: str | None = None) -> None:
        self.server, self.reads_in, self.marker_after = server, reads_in, marker_after
        self.gates = {name: threading.Event() for name in ("start", *self.stages)}
        self.output = ""
        for gate in self.gates.values():
            gate.set()

    def launch(self, lane: Lane) -> dict[str, threading.Event]:
        """Enqueue it all; return the events that a ticket could be. An event of an EARLIER launch would be worthless."""
        made: dict[str, threading.Event] = {}
        lane.wait(self.gates["start"])
        for name in self.stages:
            lane.submit(partial(self._run, name))
            if name == "load_batch":
                made["pre_replay"] = lane.record()
            if name == self.marker_after:
                made["in_graph"] = lane.record()
            if name == "sample":
                made["post_replay"] = lane.record()
            lane.wait(self.gates[name])
        return made

    def _run(self, name: str) -> None:
        if name == self.reads_in:  # THE LAST SHARED READ: from here on the forward has its own copy
            self.slots = self.server.req_to_token[0].copy()
        if name == "sample":
            text = "".join(self.server.kv[self.slots]).strip()
            at = BOOK.index(text) + len(text)
            self.output = BOOK[at : BOOK.index(".", at) + 1]


def policy(declared: str, marker: bool) -> tuple[str, str]:
    """Where the ticket is recorded, and why. Ordered rules, first match wins; never earlier than the declared read."""
    rules = (
        (declared == "unknown", "none", "nobody knows where the reads end: wait for all of it"),
        (declared == "pre_replay", "pre_replay", "all reads are over when the batch is loaded"),
        (declared == "in_graph" and marker, "in_graph", "the last read is inside, and a marker stands behind it"),
        (True, "post_replay", "nothing marks the last read: later, never earlier"),
    )
    return next((answer, why) for applies, answer, why in rules if applies)


def barrier(schedule: Lane, forward: Lane, tickets: dict[str, threading.Event], answer: str) -> None:
    """Right after the launch: the schedule lane waits for the ticket (fine), or for the whole forward lane (coarse)."""
    schedule.wait(tickets[answer] if answer != "none" else forward.record())


def step(reads_in: str, marker_after: str | None, fence: str, hold: str) -> tuple[bool, str]:
    """One launch, held at a gate while the scheduler writes. (Did the write land meanwhile? What did the cat's text become?)"""
    server, forward_lane, schedule = Server(), Lane(), Lane()
    forward = Forward(server, reads_in, marker_after)
    forward.gates[hold].clear()
    tickets = forward.launch(forward_lane)
    if fence != "off":
        barrier(schedule, forward_lane, tickets, fence)
    schedule.submit(server.give_row_to_the_dog)  # batch N+1 is planned while forward N runs
    forward_lane.settle()  # it stands at the gate
    landed = schedule.settle()
    forward.gates[hold].set()
    forward_lane.settle()
    schedule.settle()
    return landed, forward.output


def release_point(reads_in: str, marker_after: str | None, fence: str) -> str:
    """The probe: hold the forward behind each stage in turn; the first at which the write lands. Measured, not declared."""
    held = ("start", *Forward.stages)
    return next((at for at in held if step(reads_in, marker_after, fence, at)[0]), "end")


def main() -> None:
    """Tell the story."""
    print(f"prompt, in row 0:  {CAT!r}")
    for fence, what in (
        ("off", "no fence"),
        ("none", "coarse: wait for the whole forward"),
        ("in_graph", "the ticket"),
    ):
        landed, text = step("page_table", "page_table", fence, hold="load_batch")
        when = "BEFORE the read" if landed else "behind the fence"
        print(f"  {what:<36} the row is given away {when:<17} -> {text!r}")
    print("\nwhere do the reads end, what does the policy say, and where does the write land?")
    cases = (("pre_replay", "load_batch", None), ("in_graph", "page_table", "page_table"),
             ("in_graph", "page_table", None), ("unknown", "layer.1", None))  # fmt: skip
    for declared, reads_in, marker in cases:
        answer, why = policy(declared, marker is not None)
        print(
            f"  read in {reads_in:<11} -> {answer:<12} lands behind {release_point(reads_in, marker, answer):<11} {why}"
        )


if __name__ == "__main__":
    main()
