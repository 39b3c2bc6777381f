"""Who reads the shared tables, by the parameters of a graph's nodes.

A kernel's parameters are bytes; a word of them that is an address in a table's memory says that the kernel can reach the
table. What it does there is not said, so it counts as a reader: where that is wrong, the marker stands later, never earlier.
What holds the address only in memory (a list of pointers) shows nothing of it: that finds `measure`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from warfence.parity.boundary import Access, Boundary, Operation
from warfence.parity.boundary.find import ends
from warfence.parity.graph.nodes import HOST, KERNEL, Node, Span, Table
from warfence.parity.graph.order import Order

HOST_FUNCTION = "a function of the host, which may read anything"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a graph's nodes say. nodes: with what each may access, in the order of the list. order: who is before whom.

    boundary: behind which nodes no table is read; `boundary.after` is the one of them that comes last in the order.
    """

    nodes: tuple[Operation, ...]
    order: Order
    boundary: Boundary

    def lines(self) -> list[str]:
        """The report: each node that touches a table, what could not be seen, what decided."""
        written = [f"{op}: writes {', '.join(map(str, op.writes))}" for op in self.nodes if op.writes]
        return [*written, *self.boundary.lines()]

    def document(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return self.boundary.document() | {"nodes": [op.document() for op in self.nodes]}


def read(nodes: Sequence[Node], tables: Sequence[Table]) -> Reading:
    """What each node of a graph may do to the tables. Raises nothing for one that writes them: that is for who plants."""
    order = Order(nodes)
    operations = tuple(_operation(node, tables) for node in nodes)
    return Reading(operations, order, bounded(operations, order))


def bounded(operations: Sequence[Operation], order: Order, also: Iterable[int] = ()) -> Boundary:
    """The boundary of a graph: its last readers, and what cannot be seen, on every branch. also: found by other means."""
    reads = tuple(op for op in operations if op.reads)
    unseen = tuple(op for op in operations if op.unseen)
    last = order.last([*(op.position for op in (*reads, *unseen)), *also])
    return ends([operations[p] for p in sorted(last, key=order.topological.index)], reads, unseen, len(operations))


def _operation(node: Node, tables: Sequence[Table]) -> Operation:
    every = [node, *_within(node)]
    reads = (a for one in every for a in (*_reached(one, tables), *_met(one.reads, tables)))
    writes = (a for one in every for a in _met(one.writes, tables))
    unseen = (one.unknown or (HOST_FUNCTION if one.kind == HOST else "") for one in every)
    return Operation(
        node.position,
        node.name or node.kind,
        reads=tuple(dict.fromkeys(reads)),
        writes=tuple(dict.fromkeys(writes)),
        unseen="; ".join(dict.fromkeys(filter(None, unseen))),
        kind=f"{KERNEL} node" if node.kind == KERNEL else "node",
    )


def _within(node: Node) -> Iterator[Node]:
    for one in node.inside:
        yield one
        yield from _within(one)


def _reached(node: Node, tables: Sequence[Table]) -> Iterator[Access]:
    """The tables that an address among the parameters leads to: from its cell on, or all where it lies around the table."""
    for word in node.words:
        for table in tables:
            if table.around.begin <= word < table.around.end:
                cells = (table.end - table.begin) // table.size
                inside = table.begin <= word < table.end
                yield Access(table.name, (word - table.begin) // table.size if inside else 0, cells)


def _met(spans: Sequence[Span], tables: Sequence[Table]) -> Iterator[Access]:
    for begin, end in spans:
        for table in tables:
            first, last = max(begin, table.begin) - table.begin, min(end, table.end) - table.begin
            if first < last:
                yield Access(table.name, first // table.size, -(-last // table.size))
