"""Gates in front of accesses that a host thread runs, or calls back."""

from __future__ import annotations

import threading
from collections.abc import Callable

StandAt = Callable[[Callable[[], bool], Callable[[], object]], None]


class StepGates:
    """Implements `warfence.races.replay.machine.Gates` by a condition."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: set[int] = {-1}
        self._reached: set[int] = set()
        self._finished: set[int] = set()
        self._released = False

    def open(self, step: int) -> None:
        with self._changed:
            self._open.add(step)
            self._changed.notify_all()

    def release(self) -> None:
        with self._changed:
            self._released = True
            self._changed.notify_all()

    def finished(self, step: int) -> bool:
        return step in self._finished

    def holds(self, step: int) -> bool:
        """Whether somebody stands at this gate now."""
        return step in self._reached and not self._passes(step)

    def count(self) -> int:
        return len(self._reached) + len(self._finished)

    def pass_through(self, step: int, stand: StandAt) -> None:
        with self._changed:
            self._reached.add(step)
        stand(lambda: self._passes(step), lambda: self.block(step))

    def block(self, step: int) -> None:
        """Block this thread until the gate is open."""
        with self._changed:
            self._reached.add(step)
            self._changed.wait_for(lambda: self._passes(step))

    def finish(self, step: int) -> None:
        with self._changed:
            self._finished.add(step)

    def _passes(self, step: int) -> bool:
        return self._released or step in self._open
