"""A strict pretended driver: graphs that read and write a table of numbers, and refuse what a real driver refuses.

Each node mixes what it reads with what the nodes before it left behind. A copy that is launched overwrites the table where
it was told to; two branches run in whatever order `seed` gives them, and nothing may depend on that.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from warfence.parity.graph import Node, Order

RIGHT, WRONG = 1, 2


class PretendedGraph:
    """reads: positions that read the table, seen by parameters or not. hidden: whose results no output depends on."""

    def __init__(
        self, nodes: Sequence[Node], reads: set[int], hidden: frozenset[int] = frozenset(), seed: int = 0
    ) -> None:
        self.nodes, self.order = nodes, Order(nodes)
        self._reads, self._hidden, self._random = reads, hidden, random.Random(seed)
        self.launches: list[frozenset[int]] = []
        self._clean = self._launch(None)

    def changed(self, behind: frozenset[int]) -> bool:
        assert self.order.closed(behind) == behind, "a node was put before one that it depends on"
        self.launches.append(behind)
        return self._launch(behind) != self._clean

    def _launch(self, behind: frozenset[int] | None) -> int:
        """One run in an order that the edges permit; the overwriting takes part as a node of its own."""
        depends = {node.position: set(node.depends) for node in self.nodes}
        if behind is not None:
            before, after = self.order.seam(behind)
            depends[-1] = set(before)
            for follower in after:
                depends[follower].add(-1)
        table, values, output = RIGHT, {}, 0
        while depends:
            at = self._random.choice([p for p, wants in depends.items() if not wants])
            del depends[at]
            for wants in depends.values():
                wants.discard(at)
            if at == -1:
                table = WRONG
                continue
            values[at] = hash((at, table if at in self._reads else 0))
            if at not in self._hidden:
                output ^= values[at]
        return output
