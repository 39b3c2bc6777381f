"""Where the shared reads of a program end: found by tracing its kernels, and, on CUDA, by the nodes of its graph."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

import torch
from torch import Tensor

from warfence.core.program import ForwardProgram
from warfence.host.stage_calls import bind
from warfence.parity.boundary import Boundary, Kept, find
from warfence.parity.boundary.find import refuse_write
from warfence.parity.graph import read
from warfence.parity.graph.reading import bounded
from warfence_torch.kernels import KERNELS
from warfence_torch.tools.capture import capturing
from warfence_torch.tools.planting.shared import SharedTensors
from warfence_torch.tools.planting.stages import stage
from warfence_torch.tools.planting.trace import Pass, Subject
from warfence_torch.words import field_views

_KEPT = Kept()


def boundary_of(program: ForwardProgram, fixed: Mapping[str, Tensor], tables: Mapping[str, Tensor]) -> Boundary:
    """Run the kernels once on a batch of padding, under a trace, each as its stage. fixed: tables, state and weights."""
    shapes = {name: tuple(table.shape) for name, table in tables.items()}
    return _KEPT.find(program, shapes, lambda: _trace(program, fixed, tables))


def graph_boundary_of(program: ForwardProgram, fixed: Mapping[str, Tensor], tables: Mapping[str, Tensor]) -> Boundary:
    """Capture the kernels stage by stage, launch nothing, and read the nodes. Only on CUDA."""
    from warfence_torch.tools.graphs.driver import enqueued, raw_graph
    from warfence_torch.tools.graphs.nodes import list_nodes

    words = torch.zeros(program.layout.words, dtype=torch.int32, device="cuda")
    graph, stream = torch.cuda.CUDAGraph(keep_graph=True), torch.cuda.Stream()
    counts: list[int] = []

    def run() -> None:
        workspace = field_views(program.layout, words)
        for each in program.stages:
            bind(each, fixed, KERNELS)(workspace)
            counts.append(enqueued(stream) if torch.cuda.is_current_stream_capturing() else 0)

    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), torch.inference_mode():
        run()  # what is made once, such as handles of libraries, is made outside
    stream.synchronize()
    counts.clear()
    with torch.inference_mode(), capturing(graph, stream):
        run()
    made = read(list_nodes(raw_graph(graph)).nodes, SharedTensors(tables).tables())
    named = [op._replace(stage=program.stages[bisect_right(counts, op.position)].name) for op in made.nodes]
    for op in named:
        refuse_write(op)
    return bounded(named, made.order)


def _trace(program: ForwardProgram, fixed: Mapping[str, Tensor], tables: Mapping[str, Tensor]) -> Boundary:
    device = next(iter(tables.values())).device
    words = torch.zeros(program.layout.words, dtype=torch.int32, device=device)

    def run() -> None:
        workspace = field_views(program.layout, words)
        for each in program.stages:
            with stage(each.name):
                bind(each, fixed, KERNELS)(workspace)

    trace = Pass(Subject(run, SharedTensors(tables), {}, device.type, torch.inference_mode))
    trace.run()
    return find(traced.operation for traced in trace.seen)
