"""Gates that are nodes of a captured graph and occupy no SM: the stream waits for a word of pinned memory.

Prior art: `cuStreamWaitValue32` on a pinned word is captured as a node, by whoever captures. Needs the package `cuda-bindings`.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterable

import numpy as np

from warfence.core.errors import FenceError, InputError
from warfence.core.gates import WATCHDOG_S
from warfence.host.cuda import pinned, use_device, wait_value, write_value


class StreamGates:
    """One pinned word a gate: 1 open, 0 closed; a second word tells the host that the stream stands there."""

    def __init__(self, positions: Iterable[str], watchdog_s: float = WATCHDOG_S) -> None:
        self.positions = tuple(positions)
        count = 2 * len(self.positions)
        self._address = pinned(4 * max(count, 1))
        self._words = np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(self._address))
        self._at = {p: i for i, p in enumerate(self.positions)}
        self._watchdog_s = watchdog_s
        self._watchdogs: dict[str, threading.Timer] = {}
        self.watchdog_fired: list[str] = []
        self._before: Callable[[], object] | None = None
        self.open_all()

    def stand(self, position: str, stream: int) -> None:
        """Put the gate on a stream (its handle), inside a capture or not: tell the host, then wait for the word."""
        handle = use_device().CUstream(stream)
        reached, gate = self.addresses(position)
        write_value(handle, reached, 1)
        wait_value(handle, gate, 1)

    def addresses(self, position: str) -> tuple[int, int]:
        """Of the word that says that the gate was reached, and of the one that is waited for: at least 1 is open."""
        i = self._index(position)
        return self._address + 4 * (len(self.positions) + i), self._address + 4 * i

    def before_closing(self, call: Callable[[], object]) -> None:
        """Called once, before the first gate is closed: what must have run while all are open."""
        self._before = call

    def close(self, position: str) -> None:
        i = self._index(position)
        call, self._before = self._before, None
        if call is not None:
            call()
        self._words[len(self.positions) + i] = 0
        self._words[i] = 0
        timer = threading.Timer(self._watchdog_s, self._bark, (position,))
        timer.daemon = True
        self._watchdogs[position] = timer
        timer.start()

    def open(self, position: str) -> None:
        self._words[self._index(position)] = 1
        if timer := self._watchdogs.pop(position, None):
            timer.cancel()

    def open_all(self) -> None:
        for position in self.positions:
            self.open(position)

    def abort(self) -> None:
        """The forward failed, or the backend closes: let everybody go on."""
        self._words[len(self.positions) :] = 1
        self.open_all()

    def await_reached(self, position: str, timeout_s: float = WATCHDOG_S) -> None:
        i = len(self.positions) + self._index(position)
        end = time.perf_counter() + timeout_s
        while not self._words[i]:
            if time.perf_counter() > end:
                raise FenceError(f"the forward did not reach the gate at '{position}' within {timeout_s} s")
            time.sleep(20e-6)

    def _bark(self, position: str) -> None:
        self.watchdog_fired.append(position)
        self.open_all()

    def _index(self, position: str) -> int:
        if position not in self._at:
            raise InputError(f"no gate at '{position}'; gates: {', '.join(self.positions)}")
        return self._at[position]
