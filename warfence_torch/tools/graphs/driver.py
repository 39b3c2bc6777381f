"""Calls of the CUDA driver: what one returned, or one sentence about why it did not."""

from __future__ import annotations

from typing import Any

import torch

from warfence.core.errors import InputError
from warfence.host.cuda import driver

GRAPH = "torch.cuda.CUDAGraph(keep_graph=True)"


def asked(result: tuple[Any, ...], to: str) -> Any:
    """What a driver's call returned: nothing, one thing or a tuple. InputError when it failed; to: what it was to do."""
    if int(result[0]) != 0:
        raise InputError(f"the CUDA driver refuses to {to}: {getattr(result[0], 'name', result[0])}")
    return None if len(result) == 1 else result[1] if len(result) == 2 else result[1:]


def raw_graph(graph: Any) -> Any:
    """The driver's graph of a captured torch graph, or of a handle. InputError for a torch graph that keeps none."""
    cu = driver()
    if isinstance(graph, torch.cuda.CUDAGraph):
        try:
            return cu.CUgraph(int(graph.raw_cuda_graph()))
        except RuntimeError as error:
            raise InputError(
                f"the graph has no nodes to look at ({str(error).splitlines()[0]}); make it with {GRAPH} and capture it first"
            ) from error
    if isinstance(graph, int) and not isinstance(graph, bool) and graph:
        return cu.CUgraph(graph)
    if isinstance(graph, cu.CUgraph) and int(graph):
        return graph
    raise InputError(f"got a graph of type {type(graph).__name__}; allowed are {GRAPH}, captured, and a CUgraph")


def enqueued(stream: torch.cuda.Stream) -> int:
    """How many nodes the capture that is going on on this stream has so far."""
    cu = driver()
    graph = asked(cu.cuStreamGetCaptureInfo(cu.CUstream(stream.cuda_stream)), "tell what is captured")[2]
    return int(asked(cu.cuGraphGetNodes(graph, 0), "count the nodes of the capture")[1])
