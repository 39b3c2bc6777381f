"""A function as one CUDA graph, captured as the user runs it; who reads last is told by the graph's nodes.

No mode is on while it is captured, so compiled code stays compiled. The marker is put into the graph afterwards, behind the
last readers of every branch, where nothing waits for it. A second capture, thrown away, names the nodes' lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from warfence.core.errors import InputError
from warfence.parity.boundary import Boundary
from warfence.parity.boundary.find import refuse_write
from warfence.parity.graph import Reading, measure, read
from warfence.parity.graph.reading import bounded
from warfence_torch.tools.accesses import tensors
from warfence_torch.tools.callers import raised_at
from warfence_torch.tools.capture import capturing
from warfence_torch.tools.graphs.copies import made_event, put_record
from warfence_torch.tools.graphs.driver import raw_graph
from warfence_torch.tools.graphs.measure import Overwriting, later
from warfence_torch.tools.graphs.nodes import PAGEABLE, Listed, list_nodes
from warfence_torch.tools.graphs.planted import GraphPlanted
from warfence_torch.tools.graphs.tables import tables_of
from warfence_torch.tools.planting.check_host import CHECKED
from warfence_torch.tools.planting.naming import name_nodes
from warfence_torch.tools.planting.planted import refuse_hidden, refuse_view
from warfence_torch.tools.planting.trace import Subject

WARM_UP_RUNS = 2


def plant_cuda(
    subject: Subject, shared: Mapping[str, Tensor], stream: torch.cuda.Stream, pool: object, notes: list[str]
) -> GraphPlanted:
    """Warm up, capture, read the graph, check what was read, and put the marker in."""
    by_name, tables = tables_of(shared)
    _warm_up(subject, by_name, stream)
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    output = _capture(graph, subject, stream, pool)
    refuse_view(output, subject.shared)
    refuse_hidden(output)
    listed = list_nodes(raw_graph(graph))
    found = read(listed.nodes, tables)
    operations, named = name_nodes(subject, listed.nodes, found.nodes, stream)
    found = Reading(operations, found.order, bounded(operations, found.order))
    for op in operations:
        refuse_write(op)
        if op.name == PAGEABLE:
            raise InputError(f"{op} would be done again by each replay while the host goes on; use pinned memory")
    boundary, checked = _check(listed, found, by_name, output)
    event = made_event(stream)
    stream.synchronize()
    if boundary.last:
        put_record(listed.raw, [listed.handles[op.position] for op in boundary.last], event)
    graph.instantiate()
    return GraphPlanted(boundary, output, [*notes, *named, *checked], event, lambda _: graph.replay(), (graph,))


def _warm_up(subject: Subject, shared: Mapping[str, Tensor], stream: torch.cuda.Stream) -> None:
    """Run it as a server does before it captures: what is compiled or allocated once is done with then."""
    before = {name: t.detach().clone() for name, t in shared.items()}
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), subject.guard():
        for _ in range(WARM_UP_RUNS):
            refuse_view(subject.fn(), subject.shared)
    stream.synchronize()
    for name, t in shared.items():
        if not torch.equal(t.detach(), before[name]):
            raise InputError(
                f"the function writes '{name}', which is shared: only the scheduler writes shared tables; let it write to a "
                f"private copy, or leave the table out of the shared ones"
            )


def _capture(graph: torch.cuda.CUDAGraph, subject: Subject, stream: torch.cuda.Stream, pool: object) -> Any:
    """What the function returned while it was captured. InputError with the line when CUDA refuses."""
    refused: Exception | None = None
    output: Any = None
    try:
        with subject.guard(), capturing(graph, stream, pool):
            try:
                output = subject.fn()
            except Exception as error:
                refused = error  # says more than whatever ending a broken capture raises
    except RuntimeError as error:
        refused = refused or error
    if isinstance(refused, InputError):
        raise refused
    if refused is not None:
        where = raised_at(refused)
        said = str(refused).splitlines()[0] if str(refused) else type(refused).__name__
        raise InputError(
            f"the function cannot be captured; refused{f' at {where}' if where else ''}: {said}"
        ) from refused
    return output


def _check(listed: Listed, found: Reading, tables: Mapping[str, Tensor], output: Any) -> tuple[Boundary, list[str]]:
    """The boundary, later where overwriting behind it changes a result; and what to say about it."""
    last = [op.position for op in found.boundary.last]
    try:
        with Overwriting(listed, found, tables, list(tensors(tree_leaves(output))), (), None) as overwriting:
            if not overwriting.changed(found.order.closed(last)):
                return found.boundary, [CHECKED]
            measured = measure(found.order, overwriting, last)
    except InputError as error:
        return found.boundary, [f"not checked by overwriting: {error}"]
    return bounded(found.nodes, found.order, measured.last), later(found, measured)
