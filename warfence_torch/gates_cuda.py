"""Gates that are nodes of a captured graph and occupy no SM: the stream waits for a word of pinned memory.

Prior art: `cuStreamWaitValue32` on a pinned word is captured as a node, and the device address of a pinned tensor
equals its `data_ptr()` under unified addressing. Needs the package `cuda-bindings`.
"""

from __future__ import annotations

import threading
import time

import torch

from warfence.core.errors import FenceError, InputError
from warfence.core.gates import WATCHDOG_S
from warfence.host.cuda import driver, wait_value, write_value


class CudaGates:
    """One pinned word a gate: 1 open, 0 closed; a second word tells the host that the stream stands there."""

    def __init__(self, positions: tuple[str, ...], watchdog_s: float = WATCHDOG_S) -> None:
        self.positions = positions
        driver()  # says what is missing, before anything is captured
        self._words = torch.zeros(2 * len(positions), dtype=torch.int32).pin_memory()
        self._numpy = self._words.numpy()  # writes through numpy are plain host stores
        self._at = {p: i for i, p in enumerate(positions)}
        self._watchdog_s = watchdog_s
        self._watchdogs: dict[str, threading.Timer] = {}
        self.watchdog_fired: list[str] = []
        self.open_all()

    def capture(self, position: str, stream: torch.cuda.Stream) -> None:
        """Put the gate on a stream, inside a capture or not: tell the host, then wait for the word."""
        reached, gate = self.addresses(position)
        write_value(stream.cuda_stream, reached, 1)
        wait_value(stream.cuda_stream, gate, 1)

    def addresses(self, position: str) -> tuple[int, int]:
        """Of the word that says that the gate was reached, and of the one that is waited for: at least 1 is open."""
        base, i = self._words.data_ptr(), self._index(position)
        return base + 4 * (len(self.positions) + i), base + 4 * i

    def close(self, position: str) -> None:
        i = self._index(position)
        self._numpy[len(self.positions) + i] = 0
        self._numpy[i] = 0
        timer = threading.Timer(self._watchdog_s, self._bark, (position,))
        timer.daemon = True
        self._watchdogs[position] = timer
        timer.start()

    def open(self, position: str) -> None:
        self._numpy[self._index(position)] = 1
        if timer := self._watchdogs.pop(position, None):
            timer.cancel()

    def open_all(self) -> None:
        for position in self.positions:
            self.open(position)

    def await_reached(self, position: str, timeout_s: float = WATCHDOG_S) -> None:
        i = len(self.positions) + self._index(position)
        end = time.perf_counter() + timeout_s
        while not self._numpy[i]:
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
