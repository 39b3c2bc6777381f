"""The nodes of a driver's graph as data: `warfence.parity.graph.Node`s, whatever kernels they are.

Prior art: `cuGraphGetNodes`, `cuGraphKernelNodeGetParams`, and `cuFuncGetParamInfo` for the sizes of parameters. Where a
kernel belongs to a library loaded lazily, its node has no function yet: `cuKernelGetFunction` gives it.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from warfence.host.cuda import driver
from warfence.parity.graph import Node, Span
from warfence.parity.graph.nodes import COPY, HOST, KERNEL, SET, words_of
from warfence_torch.tools.graphs.driver import asked

KINDS = {
    "KERNEL": KERNEL, "MEMCPY": COPY, "MEMSET": SET, "HOST": HOST, "GRAPH": "child graph", "EMPTY": "empty",
    "WAIT_EVENT": "event wait", "EVENT_RECORD": "event record", "EXT_SEMAS_SIGNAL": "semaphore signal",
    "EXT_SEMAS_WAIT": "semaphore wait", "MEM_ALLOC": "allocation", "MEM_FREE": "free", "BATCH_MEM_OP": "memory operations",
    "CONDITIONAL": "conditional",
}  # fmt: skip
PAGEABLE = "memcpy with pageable host memory"
TOUCHES_NOTHING = {"empty", "event wait", "event record", "semaphore signal", "semaphore wait", "allocation", "free"}
MOST_DEEP = 8  # graphs inside graphs


@dataclass(frozen=True, slots=True)
class Listed:
    """A graph of the driver, its nodes as data, and their handles in the same order."""

    raw: Any
    nodes: tuple[Node, ...]
    handles: tuple[Any, ...]


def list_nodes(raw: Any, depth: int = 0) -> Listed:
    """All nodes of a graph. InputError where the driver does not list them."""
    cu = driver()
    count = asked(cu.cuGraphGetNodes(raw, 0), "count the nodes of the graph")[1]
    handles = tuple(asked(cu.cuGraphGetNodes(raw, count), "list the nodes of the graph")[0]) if count else ()
    at = {int(handle): position for position, handle in enumerate(handles)}
    depends: list[list[int]] = [[] for _ in handles]
    edges = cu.cuGraphGetEdges(raw, 0)
    if asked(edges, "count the edges of the graph")[-1]:
        edges = cu.cuGraphGetEdges(raw, edges[-1])
        asked(edges, "list the edges of the graph")
        for before, after in zip(edges[1], edges[2], strict=True):
            depends[at[int(after)]].append(at[int(before)])
    nodes = tuple(look_at(position, handles[position], tuple(depends[position]), depth) for position in range(count))
    return Listed(raw, nodes, handles)


def look_at(position: int, handle: Any, depends: tuple[int, ...] = (), depth: int = 0) -> Node:
    """One node as data."""
    cu = driver()
    said = asked(cu.cuGraphNodeGetType(handle), "say what kind a node is").name.removeprefix("CU_GRAPH_NODE_TYPE_")
    kind = KINDS.get(said, said.lower())
    node = Node(position, kind, depends=depends)
    if kind in TOUCHES_NOTHING or kind == HOST:
        return node
    if depth > MOST_DEEP:
        return node._replace(unknown=f"graphs inside graphs deeper than {MOST_DEEP}")
    look = {
        KERNEL: _kernel, COPY: _copy, SET: _set, "memory operations": _memory_operations, "child graph": _child,
        "conditional": _conditional,
    }.get(kind)  # fmt: skip
    if look is None:
        return node._replace(unknown="a kind of node that this version does not know")
    return look(node, handle, depth)


def _kernel(node: Node, handle: Any, depth: int) -> Node:
    cu = driver()
    status, params = cu.cuGraphKernelNodeGetParams(handle)
    if int(status):
        return node._replace(unknown=f"the driver does not list its parameters ({status.name})")
    func = params.func
    if not int(func):
        status, func = cu.cuKernelGetFunction(params.kern)
        if int(status):
            return node._replace(unknown=f"the driver does not tell its function ({status.name})")
    name, sizes = _function(int(func))
    node = node._replace(name=name)
    if not sizes:
        return node
    if not int(params.kernelParams):
        return node._replace(unknown="its parameters were given as one buffer, which the driver does not keep apart")
    at = ctypes.cast(int(params.kernelParams), ctypes.POINTER(ctypes.c_void_p))
    words = (word for i, size in enumerate(sizes) for word in words_of(ctypes.string_at(at[i], size)))
    return node._replace(words=tuple(words))


def _function(func: int) -> tuple[str, tuple[int, ...]]:
    """The name of a function and the sizes of its parameters, in bytes."""
    cu = driver()
    handle = cu.CUfunction(func)
    status, name = cu.cuFuncGetName(handle)
    sizes: list[int] = []
    while True:
        status_of_one, _, size = cu.cuFuncGetParamInfo(handle, len(sizes))
        if int(status_of_one):
            break
        sizes.append(size)
    return _readable(name) if not int(status) else "unnamed", tuple(sizes)


@cache
def _readable(name: bytes) -> str:
    return name.decode(errors="replace")


def _copy(node: Node, handle: Any, depth: int) -> Node:
    status, params = driver().cuGraphMemcpyNodeGetParams(handle)
    if int(status):
        return node._replace(unknown=f"the driver does not list what it copies ({status.name})")
    read, written = _side(params, "src"), _side(params, "dst")
    if read is None or written is None:
        return node._replace(unknown="it copies to or from an array without addresses")
    pageable = any(_pageable(params, side, span) for side, span in (("src", read), ("dst", written)))
    return node._replace(name=PAGEABLE if pageable else "", reads=(read,), writes=(written,))


def _pageable(params: Any, side: str, span: Span) -> bool:
    """Whether that side is memory which the driver does not know."""
    cu = driver()
    if getattr(params, f"{side}MemoryType") == cu.CUmemorytype.CU_MEMORYTYPE_DEVICE:
        return False
    kind = cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    return bool(int(cu.cuPointerGetAttribute(kind, span.begin)[0]))


def _side(params: Any, side: str) -> Span | None:
    """The memory that one side of a copy covers, from its first byte to behind its last."""
    kind = getattr(params, f"{side}MemoryType").name
    if "ARRAY" in kind:
        return None
    base = int(getattr(params, f"{side}Host" if "HOST" in kind else f"{side}Device") or 0)
    pitch, height = int(getattr(params, f"{side}Pitch")), int(getattr(params, f"{side}Height"))
    width, rows, slices = int(params.WidthInBytes), max(int(params.Height), 1), max(int(params.Depth), 1)
    x, y, z = (int(getattr(params, f"{side}{axis}")) for axis in ("XInBytes", "Y", "Z"))
    begin = base + x + y * pitch + z * pitch * height
    return Span(begin, begin + width + (rows - 1) * pitch + (slices - 1) * pitch * height)


def _set(node: Node, handle: Any, depth: int) -> Node:
    status, params = driver().cuGraphMemsetNodeGetParams(handle)
    if int(status):
        return node._replace(unknown=f"the driver does not list what it fills ({status.name})")
    begin = int(params.dst)
    row, rows = int(params.width) * int(params.elementSize), max(int(params.height), 1)
    return node._replace(writes=(Span(begin, begin + row + (rows - 1) * int(params.pitch)),))


def _memory_operations(node: Node, handle: Any, depth: int) -> Node:
    """Waits for and writes of single words."""
    status, params = driver().cuGraphBatchMemOpNodeGetParams(handle)
    if int(status):
        return node._replace(unknown=f"the driver does not list its words ({status.name})")
    reads: list[Span] = []
    writes: list[Span] = []
    for one in params.paramArray[: params.count]:
        name = one.operation.name
        size = 8 if "64" in name else 4
        if "WAIT_VALUE" in name:
            begin = int(one.waitValue.address)
            reads.append(Span(begin, begin + size))
        elif "WRITE_VALUE" in name:
            begin = int(one.writeValue.address)
            writes.append(Span(begin, begin + size))
    return node._replace(reads=tuple(reads), writes=tuple(writes))


def _child(node: Node, handle: Any, depth: int) -> Node:
    status, graph = driver().cuGraphChildGraphNodeGetGraph(handle)
    if int(status):
        return node._replace(unknown=f"the driver does not give its graph ({status.name})")
    return node._replace(inside=list_nodes(graph, depth + 1).nodes)


def _conditional(node: Node, handle: Any, depth: int) -> Node:
    """Drivers before CUDA 13.2 do not tell the bodies of a conditional node."""
    cu = driver()
    said: tuple[Any, ...] = cu.cuGraphNodeGetParams(handle) if hasattr(cu, "cuGraphNodeGetParams") else (1,)
    bodies = said[1].conditional.phGraph_out if not int(said[0]) else None
    if not bodies:
        return node._replace(unknown="a conditional whose bodies this driver does not list")
    count = int(said[1].conditional.size)
    inside = [one for body in bodies[:count] for one in list_nodes(body, depth + 1).nodes]
    return node._replace(inside=tuple(inside))
