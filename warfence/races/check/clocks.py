"""Vector clocks of lanes and host, and which wait brought each part of them: what a fence was good for.

A lane's position counts its operations. Clock[a][b] = n: what comes next on lane a is ordered behind the first n
operations of lane b.

`warfence.races.scenarios.order` is the same mathematics a second time, on purpose. There it goes through the calls of a program,
here through a log that a recorder wrote, and the two judge each other: in the catalogue, in `warfence sweep` and under
hypothesis. They share no code, so that one mistake cannot make both wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence


class Edge:
    """One wait: a lane (or the host) behind a position of another one.

    upto: the position waited for. known: what the lane was behind already. needed: the last position that a conflict
    needed through this edge. placed: the waiter's own position at the wait. later: as needed, by conflicts behind this wait
    and no other of its lane: what this turn of a loop needs.
    """

    __slots__ = ("index", "known", "later", "needed", "placed", "source", "upto", "used", "waiter")

    def __init__(self, index: int, waiter: int, source: int, upto: int, known: int, placed: int) -> None:
        self.index, self.waiter, self.source = index, waiter, source
        self.upto, self.known, self.placed = upto, known, placed
        self.needed, self.later, self.used = 0, 0, False


class _Acquired:
    """How one component of one lane's clock grew: values ascending, with the edge (None: from the host) and position."""

    __slots__ = ("edges", "placed", "values")

    def __init__(self) -> None:
        self.values: list[int] = []
        self.edges: list[Edge | None] = []
        self.placed: list[int] = []


class Clocks:
    """One clock for each lane; lane 0 is the host."""

    def __init__(self, lanes: int) -> None:
        self.now = [[0] * lanes for _ in range(lanes)]
        self.edges: list[Edge] = []
        self._acquired: list[defaultdict[int, _Acquired]] = [defaultdict(_Acquired) for _ in range(lanes)]
        self._credited: list[defaultdict[int, int]] = [
            defaultdict(int) for _ in range(lanes)
        ]  # what `use` was last asked for
        self._host_version = 0
        self._seen = [0] * lanes

    def enqueue(self, lane: int) -> list[int]:
        """The host enqueues on this lane: what the host knows holds for the operation. Returns the lane's clock."""
        now = self.now
        clock = now[lane]
        if lane:
            clock[0] = now[0][0]
            if self._seen[lane] != self._host_version:
                self._seen[lane] = self._host_version
                self._join(lane, now[0], None)
        return clock

    def wait(self, index: int, lane: int, source: int, held: Sequence[int]) -> None:
        """Lane waits for what an event of lane `source` holds."""
        clock = self.now[lane]
        edge = Edge(index, lane, source, held[source], clock[source], clock[lane])
        if lane != source:
            self.edges.append(edge)
        self._join(lane, held, edge)
        if lane == 0:
            self._host_version += 1

    def use(self, lane: int, other: int, position: int) -> None:
        """A conflict needed lane behind `position` of `other`: credit the edges that first brought that."""
        if self._credited[lane][other] == position:
            return
        self._credited[lane][other] = position
        latest = self._acquired[lane][other].edges[-1]
        if latest is not None:
            latest.later = max(latest.later, position if latest.source == other else latest.upto)
        while other:
            acquired = self._acquired[lane][other]
            at = bisect_left(acquired.values, position)
            edge = acquired.edges[at]
            if edge is None:
                lane = 0
                continue
            edge.used = True
            if edge.source == other:
                if edge.needed < position:
                    edge.needed = position
                return
            lane = edge.source
            chain = self._acquired[lane][other]
            edge.needed = max(edge.needed, chain.placed[bisect_left(chain.values, position)])

    def _join(self, lane: int, held: Sequence[int], edge: Edge | None) -> None:
        clock = self.now[lane]
        for other, position in enumerate(held):
            if position > clock[other]:
                clock[other] = position
                if other != lane:
                    acquired = self._acquired[lane][other]
                    acquired.values.append(position)
                    acquired.edges.append(edge)
                    acquired.placed.append(clock[lane])
