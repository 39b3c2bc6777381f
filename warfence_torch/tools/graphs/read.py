"""read_graph(): which nodes of a captured graph reach the shared tables."""

from __future__ import annotations

from typing import Any

from warfence.parity.graph import Reading, read
from warfence_torch.tools.graphs.driver import raw_graph
from warfence_torch.tools.graphs.nodes import list_nodes
from warfence_torch.tools.graphs.tables import Given, tables_of


def read_graph(graph: Any, shared: Given) -> Reading:
    """Every node of a captured graph with the shared tables that its parameters lead to, and where their reads end.

    graph: a `torch.cuda.CUDAGraph(keep_graph=True)` behind its capture, or a `CUgraph` (of cuda-bindings, or its address as a
    number). shared: tensors on the current device, or pinned ones, in a list or by name.

    Nothing is launched. A kernel that holds a table's address counts as its reader, whatever it does there; one that finds the
    address in memory is not seen (`measure_graph` does); host functions and kernels whose parameters cannot be listed count
    as readers, and the report says so. InputError for any other graph or tensor.
    """
    raw = raw_graph(graph)
    _, tables = tables_of(shared)
    return read(list_nodes(raw).nodes, tables)
