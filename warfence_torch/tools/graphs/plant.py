"""plant_graph(): the read-done marker in a graph that somebody else captured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from warfence.parity.boundary.find import refuse_write
from warfence.parity.graph import measure, read
from warfence.parity.graph.reading import bounded
from warfence_torch.gates_cuda import CudaGates
from warfence_torch.tools.graphs.copies import Copy, made_event
from warfence_torch.tools.graphs.driver import raw_graph
from warfence_torch.tools.graphs.measure import Overwriting, later
from warfence_torch.tools.graphs.nodes import list_nodes
from warfence_torch.tools.graphs.planted import GraphPlanted
from warfence_torch.tools.graphs.tables import Given, tables_of

START, BEFORE, BEHIND = "start", "before the last read", "behind the last read"
NOT_MEASURED = (
    "by parameters alone: a read by an address that lies in memory, or a kernel that writes a table, shows only when it is "
    "measured (outputs=)"
)
RANDOM = "random numbers that torch draws inside the graph are drawn anew by torch's own replay() only, not by this copy of it"


def plant_graph(
    graph: Any,
    shared: Given,
    outputs: Any = None,
    *,
    state: Any = (),
    wrong: Mapping[str, Tensor] | None = None,
    gated: bool = False,
) -> GraphPlanted:
    """A copy of a captured graph that records an event behind its last readers, on every branch; nothing waits for it.

    graph, shared: as for `read_graph`. outputs, state, wrong: as for `measure_graph`; with outputs the last readers are
    measured too, and the later ones count. gated: with gates at "start", "before the last read" and "behind the last read"
    (`gates` of what is returned), for holding it there.

    The graph itself stays as it is; keep it, and the tensors that it was captured with, as long as what is returned. InputError
    where the graph writes a table, with the node, and where the driver refuses to clone; nothing is left behind then.
    """
    raw = raw_graph(graph)
    by_name, tables = tables_of(shared)
    listed = list_nodes(raw)
    found = read(listed.nodes, tables)
    for op in found.nodes:
        refuse_write(op)
    boundary, notes = found.boundary, [NOT_MEASURED]
    if outputs is not None:
        with Overwriting(listed, found, by_name, outputs, state, wrong) as overwriting:
            measured = measure(found.order, overwriting, (op.position for op in boundary.last))
        boundary = bounded(found.nodes, found.order, measured.last)
        ends = " and ".join(str(found.nodes[p]) for p in measured.last)
        notes = [f"measured in {overwriting.launches} launches: {ends} reads last", *later(found, measured)]
    stream = torch.cuda.Stream()
    event = made_event(stream)
    stream.synchronize()
    copy = Copy(listed)
    last = [op.position for op in boundary.last]
    gates = CudaGates((START, BEFORE, BEHIND)) if gated else None
    if gates is not None:
        upto = found.order.closed(last)
        for position, closed in ((START, frozenset[int]()), (BEFORE, upto - set(last)), (BEHIND, upto)):
            copy.put_gate(found.order.seam(closed), *gates.addresses(position))
    if last:
        copy.put_record(last, event)
    copy.instantiate()
    return GraphPlanted(boundary, outputs, [*notes, RANDOM], event, copy.launch, (copy, graph, gates), gates)
