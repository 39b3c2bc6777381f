"""What a sweep goes through, in chunks: the same ones for the same options, however many workers there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from warfence.core.errors import InputError
from warfence.races.sweep.case import Drawn
from warfence.races.sweep.families import FAMILIES

DRAWN_CASES = 1000  # of a random family, without a limit
CHUNK = 64  # cases, without lanes
LANES_CHUNK = 4  # a case with lanes may take a second, and Ctrl-C waits for the chunks in work
MOST_CASES = 500_000  # of a family, without a limit


@dataclass(frozen=True, slots=True)
class Chunk:
    """Cases of one family by their indices. number: from 0, in the whole sweep."""

    number: int
    family: str
    indices: Sequence[int]


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The options of a sweep. limit: cases of each family, None: all, and of a random one DRAWN_CASES.

    steps: the most a loop goes round, and the most sentences of a short program. backends: whose lanes judge, too.
    """

    families: tuple[str, ...]
    steps: int
    limit: int | None
    seed: int
    backends: tuple[str, ...] = ()
    device: str = "cpu"

    def chunks(self) -> list[Chunk]:
        """All of them, in order. InputError: a family has too many cases to go through all."""
        size = LANES_CHUNK if self.backends else CHUNK
        found: list[Chunk] = []
        for name in self.families:
            chosen = self._chosen(name)
            found += [
                Chunk(len(found) + number, name, chosen[at : at + size])
                for number, at in enumerate(range(0, len(chosen), size))
            ]
        return found

    def _chosen(self, name: str) -> Sequence[int]:
        family = FAMILIES[name]
        if isinstance(family, Drawn):
            return range(self.limit or DRAWN_CASES)
        size = family.size(self.steps)
        if self.limit is None and size > MOST_CASES:
            raise InputError(
                f"family '{name}' has {size} cases with --steps {self.steps}, more than {MOST_CASES}; "
                f"give --limit, or fewer --steps"
            )
        if self.limit is None or self.limit >= size:
            return range(size)
        return sorted(Random(f"{name} {self.seed}").sample(range(size), self.limit))
