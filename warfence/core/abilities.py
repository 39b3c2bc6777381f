"""What a backend may be able to do beside `warfence.core.backend.Backend`: optional protocols, each asked for by name.

A backend implements an ability by having its method, and nobody registers anything. Whoever asks says what follows without
it. Whatever is put around a backend forwards every ability of it (law 16); `ABILITIES` has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from warfence.core.backend import Forward
from warfence.core.batch import Batch
from warfence.core.errors import InputError
from warfence.core.modes import Region, WarReadDonePolicy
from warfence.core.program import ForwardProgram

# -- finding boundaries


class Found(Protocol):
    """The read boundary of a program as its kernels have it.

    stage: the last that reads, or may read, a shared table; None where none does. tables: what it reads. place: its code.
    """

    @property
    def stage(self) -> str | None: ...
    @property
    def tables(self) -> tuple[str, ...]: ...
    @property
    def place(self) -> str: ...


@runtime_checkable
class FindsBoundary(Protocol):
    """A backend that traces its kernels. One that cannot is trusted with what is declared, and audits say so."""

    def find_boundary(self, program: ForwardProgram) -> Found:
        """Where the shared reads of the whole program end, by its kernels.

        Called by an engine for each forward before it is compiled, and by audits, after `tables` and `load`. InputError when a
        kernel writes a shared table.
        """
        ...


@runtime_checkable
class ReadsGraph(Protocol):
    """A backend whose captured forwards are graphs that say themselves who reads."""

    def graph_boundary(self, program: ForwardProgram) -> Found | None:
        """Where the shared reads of the whole program end, by the nodes of its captured graph; None without graphs here.

        Called by audits, after `tables` and `load`. InputError when a node writes a shared table.
        """
        ...


@runtime_checkable
class SaysCompiled(Protocol):
    """A backend whose compiler leaves a text that says who reads what."""

    def compiled_boundary(self, forward: Forward) -> str | None:
        """The last stage of a compiled forward that takes a shared table, by the text; None where none does. Equal reads of
        several stages may have become one, of the first. Blocks until it is compiled."""
        ...


def disagreement(
    program: ForwardProgram, found: Found, policy: WarReadDonePolicy, marker_after: str | None
) -> str | None:
    """What is wrong about publishing by this policy (its marker after that stage); None when it fits what was found.

    A ticket that is out before the last read corrupts, one behind it waits for more than it need.
    """
    late = found.stage
    if policy is WarReadDonePolicy.NONE:
        return None  # nothing is promised
    region = program.stages[program.index(late)].region if late is not None else Region.LOAD_BATCH
    tables = " and ".join(f"'{name}'" for name in found.tables) or "a shared table, perhaps,"
    where = f"stage '{late}' is found to read {tables} last, at {found.place or 'an unknown place'}"
    if policy is WarReadDonePolicy.PRE_REPLAY and region is not Region.LOAD_BATCH:
        return f"the reads are declared to end before the replay, but {where}"
    if policy is WarReadDonePolicy.POST_REPLAY and region is Region.TAIL:
        return f"the reads are declared to end with the replay, but {where}"
    if policy is WarReadDonePolicy.IN_GRAPH and late != marker_after:
        if late is None:
            return f"the reads are declared to end after '{marker_after}', but no stage is found to read a shared table"
        return f"the reads are declared to end after '{marker_after}', but {where}"
    return None


def confirm(program: ForwardProgram, found: Found, policy: WarReadDonePolicy, marker_after: str | None) -> None:
    """InputError with the late stage and its code when what is declared is not what was found."""
    if wrong := disagreement(program, found, policy, marker_after):
        raise InputError(f"program '{program.name}': {wrong}; correct the declaration of the attention backend")


# -- telling when something ran

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
    """A backend that can tell when its stages run. Without it there is no timeline."""

    def time_stages(self) -> Timer:
        """Called once, before `compile`: forwards that are compiled from here on note when their stages run."""
        ...


@runtime_checkable
class Profiles(Protocol):
    """A backend whose framework has a profiler."""

    def profiled(self, path: Path) -> AbstractContextManager[None]:
        """All that runs inside, by the framework's profiler; its trace is at `path` afterwards."""
        ...


@runtime_checkable
class TimesBarrier(Protocol):
    """A backend with clocks on both lanes. Asked by benchmarks alone."""

    def barrier_latency_us(
        self, program: ForwardProgram, marker_after: str, batch: Batch, launches: Iterator[int], rounds: int
    ) -> Sequence[float]:
        """Microseconds from the marker being reached to the schedule lane going on behind its wait; one a round.

        InputError, with the reason, where this device has no such clocks.
        """
        ...


ABILITIES: tuple[type, ...] = (FindsBoundary, ReadsGraph, SaysCompiled, TimesStages, Profiles, TimesBarrier)


def methods_of(abilities: Sequence[type] = ABILITIES) -> tuple[str, ...]:
    """The names of their methods."""
    return tuple(name for one in abilities for name in vars(one) if not name.startswith("_"))


__all__ = [
    "ABILITIES",
    "FindsBoundary",
    "Found",
    "Profiles",
    "ReadsGraph",
    "SaysCompiled",
    "StageTime",
    "Stamp",
    "Timer",
    "TimesBarrier",
    "TimesStages",
    "confirm",
    "disagreement",
    "methods_of",
]
