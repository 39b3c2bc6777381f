"""Which line of the code a graph's node comes from: a second capture of the call, under a trace, that is thrown away.

Nothing runs in it, and compiled functions stay compiled. As written a compiled function makes other kernels than compiled; where
the two graphs differ, lines are told for the function as it was written, and not for nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from warfence.core.errors import InputError
from warfence.parity.boundary import Operation
from warfence.parity.boundary.find import refuse_write
from warfence.parity.graph import Node
from warfence_torch.tools.capture import capturing
from warfence_torch.tools.compiled import as_written
from warfence_torch.tools.graphs.driver import enqueued, raw_graph
from warfence_torch.tools.graphs.nodes import list_nodes
from warfence_torch.tools.planting.trace import Escapes, Pass, Subject


def name_nodes(
    subject: Subject, nodes: Sequence[Node], operations: Sequence[Operation], stream: torch.cuda.Stream
) -> tuple[tuple[Operation, ...], list[str]]:
    """The operations of the nodes with lines and stages, and what to say where that cannot be.

    InputError for what is read, or written, outside of the capture, on the host or on a foreign
    stream, and for an operation that writes a shared tensor.
    """
    counts: list[int] = []
    run = Pass(subject, behind=lambda position: counts.append(_enqueued()), ahead=lambda: counts.append(_enqueued()))
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    failed: Exception | None = None
    try:
        with as_written(), capturing(graph, stream):
            try:
                run.run()
            except Exception as error:
                failed = error
        written = list_nodes(raw_graph(graph)).nodes if failed is None else ()
    except (RuntimeError, InputError) as error:
        failed, written = failed or error, ()
    if isinstance(failed, Escapes):
        raise failed
    for traced in run.seen:
        refuse_write(traced.operation)
    if failed is not None:
        said = str(failed).splitlines()[0] if str(failed) else type(failed).__name__
        return tuple(operations), [f"the lines are not known: under a trace the call fails ({said})"]
    if [(n.kind, n.name) for n in written] != [(n.kind, n.name) for n in nodes]:
        reads = [traced.operation for traced in run.seen if traced.operation.reads]
        return tuple(operations), [f"as written, {op} reads {', '.join(map(str, op.reads))}" for op in reads]
    return tuple(_with_line(op, run, counts) for op in operations), []


def _with_line(op: Operation, run: Pass, counts: Sequence[int]) -> Operation:
    """Counts: how many nodes there were ahead of and behind each traced operation, in turn."""
    before = ""
    for traced, ahead, behind in zip(run.seen, counts[::2], counts[1::2], strict=False):
        one = traced.operation
        if ahead <= op.position < behind:
            return op._replace(where=one.where, stage=one.stage)
        if op.position < ahead:
            break
        before = one.where
    return op._replace(where=f"a line behind {before}" if before else "")


def _enqueued() -> int:
    """How many nodes the capture has so far. Escapes where the current stream does not belong to it."""
    stream = torch.cuda.current_stream()
    if not torch.cuda.is_current_stream_capturing():
        raise Escapes(
            "an operation runs on a stream that the capture does not know, so no replay does it again; let that stream wait "
            "for the capturing one first: side.wait_stream(torch.cuda.current_stream())"
        )
    return enqueued(stream)
