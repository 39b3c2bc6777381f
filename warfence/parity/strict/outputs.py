"""The results of one launch of the strict backend."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from warfence.core.errors import FenceError
from warfence.parity.kernels import Array
from warfence.parity.strict.machine import Machine, Queue


class StrictOutputs:
    """Implements `warfence.core.backend.Outputs`. Virtual time is no time."""

    device_s: float | None = None

    def __init__(self, launch: int, machine: Machine, queue: Queue) -> None:
        self.launch = launch
        self.over = False
        self.arrays: dict[str, Array] | None = None
        self._machine, self._queue = machine, queue

    def fill(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays

    def result(self) -> Mapping[str, np.ndarray]:
        """Drives until the launch is over. A result that is here stays here, whatever fails or is closed later."""
        if not self.over:
            self._machine.drive(lambda: self.over, f"result() of launch {self.launch}")
        if self.arrays is None:
            self._machine.check(self._queue)
            raise FenceError(f"launch {self.launch} has no result: it was never finished")
        for queue in self._machine.queues.values():
            if queue is not self._queue and queue.failure is not None:
                self._machine.check(queue)  # a write did not land, so this result may be wrong
        return self.arrays
