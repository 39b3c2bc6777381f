"""The last readers in any captured graph, by what its nodes' parameters hold and by overwriting tables behind nodes.

A framework lists the nodes of a graph as data, and overwrites tables inside a copy of it; what follows is decided here, once.
"""

from warfence.parity.graph.measure import Measured, Overwrites, measure
from warfence.parity.graph.nodes import Node, Span, Table
from warfence.parity.graph.order import Order
from warfence.parity.graph.reading import Reading, read
from warfence.parity.graph.release import Held, landed_at

__all__ = [
    "Held",
    "Measured",
    "Node",
    "Order",
    "Overwrites",
    "Reading",
    "Span",
    "Table",
    "landed_at",
    "measure",
    "read",
]
