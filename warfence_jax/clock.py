"""How long launches take: one thread of the backend stands behind the token of each launch and looks at the clock.

Nothing that dispatches waits for it. What it says is host time: the end of a launch is seen when this thread gets to run,
which a busy interpreter may put off by some milliseconds, and the next launch then counts as that much shorter.
"""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue

from jax import Array

from warfence.host.lanes import JOIN_S
from warfence_jax.tokens import is_ready


class Span:
    """When the first executable of one launch was dispatched, and how long the launch took from there."""

    __slots__ = ("_over", "_seconds", "began")

    def __init__(self) -> None:
        self.began: float | None = None
        self._over = threading.Event()
        self._seconds: float | None = None

    def begin(self) -> None:
        """Called before each dispatch, on the lane's thread; the first one counts."""
        if self.began is None:
            self.began = time.perf_counter()

    def over(self, seconds: float | None) -> None:
        """Let who waits have it; None: nobody can tell."""
        self._seconds = seconds
        self._over.set()

    def seconds(self) -> float | None:
        """Block until the launch is over; only for one whose last executable was dispatched."""
        self._over.wait()
        return self._seconds


class Clock:
    """Times launches in the order in which they were dispatched. Its thread starts with the first one that it waits for."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Span, Array] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._before = 0.0  # the end of the launch before: one that was dispatched early began there
        self._queued = self._taken = 0  # alike: the thread is idle, and leaves `_before` to who dispatches

    def watch(self, span: Span, token: Array) -> None:
        """The launch of this span is over when its last token is ready. Called by the thread that dispatches."""
        if self._closed:
            span.over(None)
        elif self._queued == self._taken and is_ready(token):
            self._stamp(span, token)  # the CPU client ran it inside of the dispatch: nobody need be woken
        else:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="warfence-clock", daemon=True)
                self._thread.start()
            self._queued += 1
            self._queue.put((span, token))

    def close(self) -> None:
        """Time what was dispatched, and end. Call once the lanes are closed; safe to call twice."""
        self._closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(JOIN_S)
            self._thread = None

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            self._stamp(*item)
            self._taken += 1

    def _stamp(self, span: Span, token: Array) -> None:
        try:
            token.block_until_ready()
            began = span.began
        except Exception:  # the launch failed, which whoever asks for its results is told
            began = None
        now = time.perf_counter()
        span.over(None if began is None else now - max(began, self._before))
        self._before = now
