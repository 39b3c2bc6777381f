"""Gates: how a forward is held in the middle, on purpose, to find out what the scheduler may do meanwhile.

A gate stands before the first stage (`start`) and after every stage. The host closes and opens it; the forward waits at
a closed one. A watchdog opens everything when a gate was closed for too long, so a failing test never hangs a device.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Protocol

from warfence.core.errors import FenceError, InputError

WATCHDOG_S = 30.0


class Gates(Protocol):
    """The gates of one compiled forward. Positions are `start` and the names of its stages."""

    positions: tuple[str, ...]

    def close(self, position: str) -> None:
        """Close one gate. Legal only while no launch of this forward is between its issue and this gate."""
        ...

    def open(self, position: str) -> None:
        """Open one gate; a forward that waits there goes on."""
        ...

    def open_all(self) -> None:
        """Open every gate."""
        ...

    def await_reached(self, position: str, timeout_s: float = WATCHDOG_S) -> None:
        """Block the host until the forward stands at this closed gate. FenceError after the timeout."""
        ...


class HostGates:
    """Gates of a forward whose stages run (or call back) on a host thread: plain thread events."""

    def __init__(self, positions: Iterable[str], watchdog_s: float = WATCHDOG_S) -> None:
        self.positions = tuple(positions)
        self._watchdog_s = watchdog_s
        self._open = {p: threading.Event() for p in self.positions}
        self._reached = {p: threading.Event() for p in self.positions}
        self.watchdog_fired: list[str] = []
        self.open_all()

    def _check(self, position: str) -> None:
        if position not in self._open:
            raise InputError(f"no gate at '{position}'; gates: {', '.join(self.positions)}")

    def close(self, position: str) -> None:
        self._check(position)
        self._reached[position].clear()
        self._open[position].clear()

    def open(self, position: str) -> None:
        self._check(position)
        self._open[position].set()

    def open_all(self) -> None:
        for event in self._open.values():
            event.set()

    def await_reached(self, position: str, timeout_s: float = WATCHDOG_S) -> None:
        self._check(position)
        if not self._reached[position].wait(timeout_s):
            raise FenceError(f"the forward did not reach the gate at '{position}' within {timeout_s} s")

    def abort(self) -> None:
        """The forward failed: nobody will reach a gate any more, so let everybody go on."""
        for position in self.positions:
            self._reached[position].set()
        self.open_all()

    def pass_through(self, position: str) -> None:
        """Called by the forward at this position. Waits while the gate is closed; the watchdog opens it in the end."""
        self._reached[position].set()
        if not self._open[position].wait(self._watchdog_s):
            self.watchdog_fired.append(position)
            self.open_all()
