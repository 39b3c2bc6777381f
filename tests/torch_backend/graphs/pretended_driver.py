"""A strict pretended CUDA driver: graphs of nodes in host memory, the calls that are made of `cuda.bindings.driver`, no device.

It refuses handles that ended, instances of graphs that ended, and double ends; it counts what was made and what was ended.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import IntEnum
from types import SimpleNamespace
from typing import Any


class Status(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_NOT_SUPPORTED = 801


OK, INVALID, UNSUPPORTED = Status


class MemoryType(IntEnum):
    CU_MEMORYTYPE_HOST = 1
    CU_MEMORYTYPE_DEVICE = 2
    CU_MEMORYTYPE_ARRAY = 3


class NodeType(IntEnum):
    CU_GRAPH_NODE_TYPE_KERNEL = 0
    CU_GRAPH_NODE_TYPE_MEMCPY = 1
    CU_GRAPH_NODE_TYPE_MEMSET = 2
    CU_GRAPH_NODE_TYPE_HOST = 3
    CU_GRAPH_NODE_TYPE_GRAPH = 4
    CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7
    CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10
    CU_GRAPH_NODE_TYPE_CONDITIONAL = 13
    CU_GRAPH_NODE_TYPE_NEW = 99


class Handle(int):
    """A handle is a number, as in the real bindings."""


CUgraph = CUstream = CUfunction = CUevent = CUdeviceptr = Handle


class CUgraphExec(Handle):
    pass


class Driver:
    """The functions, as attributes of one object that takes the place of the module."""

    CUgraph, CUgraphExec, CUstream, CUfunction, CUevent = Handle, CUgraphExec, Handle, Handle, Handle
    CUmemorytype = MemoryType
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)
    CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_MEMORY_TYPE=2)
    CUDA_MEMCPY3D = SimpleNamespace

    def __init__(self) -> None:
        self.graphs: dict[int, list[dict[str, Any]]] = {}
        self.edges: dict[int, list[tuple[int, int]]] = {}
        self.executables: dict[int, int] = {}
        self.functions: dict[int, tuple[str, tuple[int, ...]]] = {}
        self.pinned: set[int] = set()
        self.made = {"graphs": 0, "executables": 0}
        self.ended = {"graphs": 0, "executables": 0}
        self.refuses: set[str] = set()
        self.mode = 1
        self._next = 1000

    # -- for tests

    def graph(self, nodes: Sequence[dict[str, Any]], edges: Sequence[tuple[int, int]]) -> Handle:
        """A graph of these nodes: type, and what is asked for of that type. edges: positions."""
        raw = Handle(self._number())
        self.graphs[raw] = [{**node, "handle": Handle(self._number())} for node in nodes]
        self.edges[raw] = list(edges)
        return raw

    def kernel(self, name: str, *parameters: bytes, lazy: bool = False) -> dict[str, Any]:
        function = Handle(self._number())
        self.functions[function] = (name, tuple(map(len, parameters)))
        kept = [ctypes.create_string_buffer(p, len(p)) for p in parameters]
        array = (ctypes.c_void_p * len(kept))(*(ctypes.addressof(one) for one in kept))
        return {"type": NodeType(0), "function": function, "lazy": lazy, "kept": (kept, array)}

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _of(self, handle: int) -> dict[str, Any]:
        (found,) = [node for nodes in self.graphs.values() for node in nodes if node["handle"] == handle]
        return found

    # -- reading

    def cuGraphGetNodes(self, raw: int, count: int) -> tuple[Any, ...]:
        nodes = [node["handle"] for node in self.graphs[raw]]
        return OK, nodes[:count], len(nodes)

    def cuGraphGetEdges(self, raw: int, count: int) -> tuple[Any, ...]:
        nodes, edges = self.graphs[raw], self.edges[raw][:count]
        ends = [[nodes[edge[side]]["handle"] for edge in edges] for side in (0, 1)]
        return OK, *ends, [None] * len(edges), len(self.edges[raw])

    def cuGraphNodeGetType(self, handle: int) -> tuple[Any, ...]:
        return OK, self._of(handle)["type"]

    def cuGraphKernelNodeGetParams(self, handle: int) -> tuple[Any, ...]:
        node = self._of(handle)
        if "refused" in node:
            return INVALID, None
        func = Handle(0) if node["lazy"] else node["function"]
        return OK, SimpleNamespace(func=func, kern=node["function"], kernelParams=ctypes.addressof(node["kept"][1]))

    def cuKernelGetFunction(self, kernel: int) -> tuple[Any, ...]:
        return OK, Handle(kernel)

    def cuFuncGetName(self, function: int) -> tuple[Any, ...]:
        return OK, self.functions[function][0].encode()

    def cuFuncGetParamInfo(self, function: int, index: int) -> tuple[Any, ...]:
        sizes = self.functions[function][1]
        return (OK, 0, sizes[index]) if index < len(sizes) else (INVALID, 0, 0)

    def cuGraphMemcpyNodeGetParams(self, handle: int) -> tuple[Any, ...]:
        return OK, self._of(handle)["params"]

    cuGraphMemsetNodeGetParams = cuGraphMemcpyNodeGetParams

    def cuGraphChildGraphNodeGetGraph(self, handle: int) -> tuple[Any, ...]:
        return OK, self._of(handle)["graph"]

    def cuGraphNodeGetParams(self, handle: int) -> tuple[Any, ...]:
        bodies = self._of(handle).get("bodies")
        if not bodies:
            return UNSUPPORTED, None
        return OK, SimpleNamespace(conditional=SimpleNamespace(phGraph_out=bodies, size=len(bodies)))

    def cuPointerGetAttribute(self, attribute: int, address: int) -> tuple[Any, ...]:
        return (OK, 1) if address in self.pinned else (INVALID, None)

    # -- copies

    def cuGraphClone(self, raw: int) -> tuple[Any, ...]:
        if any(node["type"] in (10, 13) for node in self.graphs[raw]):
            return UNSUPPORTED, None
        clone = self.graph(self.graphs[raw], self.edges[raw])
        for mine, node in zip(self.graphs[clone], self.graphs[raw], strict=True):
            mine["original"] = node["handle"]
        self.made["graphs"] += 1
        return OK, clone

    def cuGraphNodeFindInClone(self, original: int, clone: int) -> tuple[Any, ...]:
        (found,) = [node["handle"] for node in self.graphs[clone] if node["original"] == original]
        return OK, found

    def cuCtxGetCurrent(self) -> tuple[Any, ...]:
        return OK, Handle(1)

    def _add(self, raw: int, behind: Sequence[int], kind: int) -> Handle:
        at = {node["handle"]: i for i, node in enumerate(self.graphs[raw])}
        self.graphs[raw].append({"type": NodeType(kind), "handle": Handle(self._number()), "original": None})
        self.edges[raw] += [(at[one], len(at)) for one in behind]
        return self.graphs[raw][-1]["handle"]

    def cuGraphAddMemcpyNode(
        self, raw: int, behind: Sequence[int], count: int, params: Any, context: int
    ) -> tuple[Any, ...]:
        assert count == len(behind)
        return OK, self._add(raw, behind, 1)

    def cuGraphAddEventRecordNode(self, raw: int, behind: Sequence[int], count: int, event: int) -> tuple[Any, ...]:
        assert count == len(behind)
        return OK, self._add(raw, behind, 7)

    def cuGraphAddDependencies(
        self, raw: int, before: Sequence[int], after: Sequence[int], data: None, count: int
    ) -> tuple[Any, ...]:
        assert count == len(before) == len(after)
        at = {node["handle"]: i for i, node in enumerate(self.graphs[raw])}
        self.edges[raw] += [(at[a], at[b]) for a, b in zip(before, after, strict=True)]
        return (OK,)

    def cuGraphInstantiate(self, raw: int, flags: int) -> tuple[Any, ...]:
        if "instantiate" in self.refuses:
            return INVALID, None
        executable = CUgraphExec(self._number())
        self.executables[executable] = raw
        self.made["executables"] += 1
        return OK, executable

    def cuGraphLaunch(self, executable: int, stream: int) -> tuple[Any, ...]:
        assert executable in self.executables, "what is launched has ended"
        return (OK,)

    def cuGraphExecDestroy(self, executable: int) -> tuple[Any, ...]:
        assert self.mode == 2, "a capture of this thread would be broken"
        del self.executables[executable]
        self.ended["executables"] += 1
        return (OK,)

    def cuGraphDestroy(self, raw: int) -> tuple[Any, ...]:
        del self.graphs[raw]
        self.ended["graphs"] += 1
        return (OK,)

    def cuThreadExchangeStreamCaptureMode(self, mode: int) -> tuple[Any, ...]:
        before, self.mode = self.mode, mode
        return OK, before
