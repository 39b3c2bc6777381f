"""Where a graph reads its tables for the last time, measured: other values are put into them behind some of its nodes.

If a result comes out different, something behind these nodes still read. No parameter, gate or clock takes part. The nodes
are cut in their topological order, in two until one node is left; then, with all that is before that node taken out of
the question, the other branches in the same way. A guess (what the parameters say) is tried first: where it is right, two
launches a branch settle it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from warfence.core.errors import InputError
from warfence.parity.graph.order import Order


class Overwrites(Protocol):
    """Launches a copy of one graph whose tables are overwritten on the way."""

    def changed(self, behind: frozenset[int]) -> bool:
        """Whether any result differs when all tables get other values behind exactly these nodes, before all others."""
        ...


@dataclass(frozen=True, slots=True)
class Measured:
    """The last readers of a graph, by position; on each branch one. launches: how many it took."""

    last: tuple[int, ...]
    launches: int


def measure(order: Order, overwrites: Overwrites, guess: Iterable[int] = ()) -> Measured:
    """The last readers of a graph. guess: who is thought to be.

    InputError where overwriting before everything changes nothing: then nobody reads, or no result depends on it.
    """
    search = _Search(order, overwrites, frozenset(guess))
    if not search.changed(frozenset()):
        raise InputError(
            "overwriting the tables before the launch changes no result: nothing reads them, or the outputs given do not "
            "depend on them; give all outputs, and the state that the graph changes"
        )
    closed: frozenset[int] = frozenset()
    found: list[int] = []
    while not found or search.changed(closed):
        rest = [p for p in search.candidates() if p not in closed]
        at = search.last_reader(closed, rest)
        found.append(at)
        closed |= order.closed([at])
    return Measured(order.last(found), search.launches)


class _Search:
    def __init__(self, order: Order, overwrites: Overwrites, guess: frozenset[int]) -> None:
        self._order, self._overwrites, self._guess = order, overwrites, guess
        self._known: dict[frozenset[int], bool] = {}
        self.launches = 0

    def changed(self, behind: frozenset[int]) -> bool:
        if behind not in self._known:
            self.launches += 1
            self._known[behind] = self._overwrites.changed(behind)
        return self._known[behind]

    def candidates(self) -> Sequence[int]:
        """All nodes in order; those that the guess stands behind, and the guess, first: it is then cut away soonest."""
        first = self._order.closed(self._guess)
        topological = self._order.topological
        return [*(p for p in topological if p in first), *(p for p in topological if p not in first)]

    def last_reader(self, closed: frozenset[int], rest: Sequence[int]) -> int:
        """The last reader among the rest, in their order. Known: some of them reads."""

        def reads_behind(count: int) -> bool:
            return self.changed(closed | frozenset(rest[:count]))

        low, high = 0, len(rest)  # something reads behind the first `low` of them, nothing behind the first `high`
        guessed = [i for i, p in enumerate(rest) if p in self._guess]
        if guessed:
            at = guessed[-1]
            if at + 1 < high and reads_behind(at + 1):
                low = at + 1
            else:
                low, high = (at, at + 1) if at == 0 or reads_behind(at) else (low, at)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if reads_behind(middle) else (low, middle)
        return rest[low]
