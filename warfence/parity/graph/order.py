"""The order that a graph prescribes: who is surely done before whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warfence.core.errors import InputError
from warfence.parity.graph.nodes import Node


class Order:
    """The nodes of one graph, with all that each stands behind.

    topological: positions, each behind all that it depends on; where the graph leaves it open, in the order of the list.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.topological: list[int] = []
        self._before: dict[int, int] = {}  # a set of positions, as the bits of a number: thousands of nodes stay cheap
        self._depends = [tuple(dict.fromkeys(node.depends)) for node in nodes]
        wanting = [len(depends) for depends in self._depends]
        followers: list[list[int]] = [[] for _ in nodes]
        for node, depends in zip(nodes, self._depends, strict=True):
            for before in depends:
                if not 0 <= before < len(nodes):
                    raise InputError(
                        f"node {node.position} depends on node {before}, which its graph does not have; "
                        f"list every node of the graph, in the order of their positions"
                    )
                followers[before].append(node.position)
        ready = [position for position, wants in enumerate(wanting) if not wants]
        while ready:
            at = min(ready)
            ready.remove(at)
            self.topological.append(at)
            self._before[at] = 0
            for before in self._depends[at]:
                self._before[at] |= self._before[before] | 1 << before
            for follower in followers[at]:
                wanting[follower] -= 1
                if not wanting[follower]:
                    ready.append(follower)
        if len(self.topological) < len(nodes):
            raise InputError(
                "the nodes depend on each other in a circle, which no graph does; check how they were listed"
            )

    def behind(self, position: int, other: int) -> bool:
        """Whether a node surely starts after another one has finished."""
        return bool(self._before[position] >> other & 1)

    def last(self, positions: Iterable[int]) -> tuple[int, ...]:
        """Those that none of the others stands behind: on each branch the last one."""
        of = sorted(set(positions))
        covered = 0
        for position in of:
            covered |= self._before[position]
        return tuple(position for position in of if not covered >> position & 1)

    def closed(self, positions: Iterable[int]) -> frozenset[int]:
        """These nodes and all that they stand behind."""
        bits = 0
        for position in positions:
            bits |= self._before[position] | 1 << position
        return frozenset(position for position in self.topological if bits >> position & 1)

    def seam(self, closed: frozenset[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Where something goes in behind these nodes and before all others: what it depends on, and what on it."""
        after = tuple(
            position
            for position in self.topological
            if position not in closed and all(before in closed for before in self._depends[position])
        )
        return self.last(closed), after
