"""What a backend delivers for a timeline: when a lane got somewhere, and when the stages of a launch ran.

A backend that can tell has a method `time_stages`. Forwards that were compiled before it was called carry nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

Stamp = Callable[[], float | None]  # microseconds, once the lane is idle; None when it never got there


@dataclass(frozen=True, slots=True)
class StageTime:
    """When a run of stages of one launch ran, in microseconds. More than one stage where nobody knows a finer time."""

    launch: int
    stages: tuple[str, ...]
    begin: float
    end: float


class Timer(Protocol):
    """The clock of one backend. All its times are microseconds since `start`, on one clock for host and lanes.

    about: the sentences of a timeline: what the clock is ("clock"), what a slice stands for ("slice"), and more.
    unit: "us", or "steps" where time is virtual. unix_ns: the time of day at `start`; None where time is virtual.
    """

    about: Mapping[str, str]
    unit: str
    unix_ns: int | None

    def start(self) -> None:
        """The trace begins here: this is 0. May block the host for a moment, to put two clocks side by side."""
        ...

    def now(self) -> float:
        """The host's time."""
        ...

    def before(self, lane: Any) -> Stamp:
        """When the lane gets to what is enqueued next. `lane` is a lane of this backend. Does not block."""
        ...

    def after(self, lane: Any) -> Stamp:
        """When all that was enqueued on the lane so far is over. Does not block."""
        ...

    def stages(self) -> list[StageTime]:
        """What ran since `start`, launch by launch. Call when the lanes are idle."""
        ...


@runtime_checkable
class TimesStages(Protocol):
    """A backend that can tell when its stages run."""

    def time_stages(self) -> Timer:
        """Called once, before `compile`: forwards that are compiled from here on note when their stages run."""
        ...


@runtime_checkable
class Profiles(Protocol):
    """A backend whose framework has a profiler."""

    def profiled(self, path: Path) -> AbstractContextManager[None]:
        """All that runs inside, by the framework's profiler; its trace is at `path` afterwards."""
        ...


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
