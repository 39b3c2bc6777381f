"""What is captured without going through torch's dispatcher: the nodes that came to be between two operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warfence.host.cuda import driver, missing
from warfence.parity.graph import Node
from warfence.races.check.events import Event
from warfence_torch.tools.callers import caller_lines
from warfence_torch.tools.graphs.driver import asked
from warfence_torch.tools.graphs.nodes import look_at
from warfence_torch.tools.watching.journal import Journal
from warfence_torch.tools.watching.memory import Memory


class CapturedNodes:
    """Counts the nodes of the capture that is going on. usable: whether the driver can be asked (`cuda-bindings`)."""

    def __init__(self, journal: Journal, memory: Memory) -> None:
        self._journal, self._memory = journal, memory
        self._known = 0
        self.usable = not missing()

    def begin(self) -> None:
        """A capture begins."""
        self._known = 0

    def skip(self, stream: int) -> None:
        """The nodes up to here, of the capture on this stream (its handle), are known by other means."""
        self._known = self._count(self._graph(stream))

    def take(self, stream: int, lane: str) -> list[Event]:
        """The accesses of the nodes since then, as events on that lane. A kernel with an address is taken for a reader."""
        graph = self._graph(stream)
        count = self._count(graph)
        if count == self._known:
            return []
        handles = asked(driver().cuGraphGetNodes(graph, count), "list the nodes of the capture")[0]
        found = [e for at in range(self._known, count) for e in self._events(look_at(at, handles[at]), lane)]
        self._known = count
        return found

    def _events(self, node: Node, lane: str) -> Iterator[Event]:
        where = caller_lines()
        title = node.name or node.kind
        if node.unknown or node.kind == "host":
            self._journal.miss(f"What '{title}', captured before {where}, reads and writes: it cannot be listed.")
        for inner in node.inside:
            yield from self._events(inner, lane)
        for word in dict.fromkeys(node.words):
            for region, first, _ in self._memory.cells(word, word + 1):
                last = (region.end - region.begin) // region.itemsize
                self._journal.miss(
                    f"Whether kernel '{title}', captured before {where}, writes '{region.name}': it holds an address of it, and "
                    f"is taken for a reader."
                )
                yield Event("read", lane, 0, title, region.name, first, last, where=where)
        for kind, spans in (("read", node.reads), ("write", node.writes)):
            for begin, end in spans:
                for region, first, last in self._memory.cells(begin, end):
                    yield Event(kind, lane, 0, title, region.name, first, last, where=where)  # type: ignore[arg-type]

    def _graph(self, stream: int) -> Any:
        cu = driver()
        return asked(cu.cuStreamGetCaptureInfo(cu.CUstream(stream)), "tell what is captured")[2]

    def _count(self, graph: Any) -> int:
        return int(asked(driver().cuGraphGetNodes(graph, 0), "count the nodes of the capture")[1])
