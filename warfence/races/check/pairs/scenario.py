"""What a scenario is: a program of calls of the neutral interface, and the right verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warfence.races.check.pairs.stand import MAP, Reads, Stand, T

Play = Callable[[Stand], object]
READ: Reads = (T,)
LATE: Reads = (MAP,)
THINK: Reads = ()


@dataclass(frozen=True)
class Scenario:
    """A program and its right verdict: ok, bad (a race), or the kind of finding. not_on: (backend, reason)."""

    name: str
    expected: str
    play: Play
    not_on: tuple[str, str] | None = None
