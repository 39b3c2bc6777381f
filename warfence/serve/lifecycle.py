"""What an engine may be asked for when: warmed up once, run by one thread at a time, in the process that made it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from warfence.core.errors import FenceError


class Lifecycle:
    """The state of one engine. Every refusal is a FenceError, before anything is done."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._state = "made"  # made, warming, warm, closed
        self._running = threading.Lock()
        self._runner = 0  # the thread inside `running`

    @contextmanager
    def warming(self) -> Iterator[None]:
        """While tables and forwards are made. Once in an engine's life: what a second time makes would stand beside the first."""
        self._check_process()
        if self._state != "made":
            raise FenceError(
                f"warm_up() of an engine that is {self._state}: an engine is warmed up once; make another one"
            )
        self._state = "warming"
        yield
        self._state = "warm"

    @contextmanager
    def running(self) -> Iterator[None]:
        """While requests are served: by one thread, and not from inside `on_token`."""
        self._check_process()
        if self._state != "warm":
            raise FenceError(
                f"run() of an engine that is {self._state}: use up warm_up() first, and run before close()"
            )
        if not self._running.acquire(blocking=False):
            who = "this very thread, in on_token" if self._runner == threading.get_ident() else "another thread"
            raise FenceError(f"run() while {who} runs: its lanes and tables serve one run at a time; wait for its end")
        self._runner = threading.get_ident()
        try:
            yield
        finally:
            self._running.release()

    def close(self) -> None:
        """No run begins after this."""
        self._state = "closed"

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise FenceError(
                f"this engine belongs to process {self._process}, and this is {os.getpid()}: a forked child has none of its "
                "threads; make an engine in the child"
            )
