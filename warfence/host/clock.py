"""The host's monotonic clock as the clock of a timeline."""

from __future__ import annotations

import time


class HostClock:
    """Microseconds of `time.perf_counter`, and the time of day at 0."""

    unit = "us"
    unix_ns: int | None = None
    _zero = 0.0

    def start(self) -> None:
        self._zero = time.perf_counter()
        self.unix_ns = time.time_ns()

    def now(self) -> float:
        return self.since(time.perf_counter())

    def since(self, seconds: float) -> float:
        """A reading of `time.perf_counter` on this clock."""
        return 1e6 * (seconds - self._zero)
