"""Copies of a driver's graph into which nodes are put, and what is made executable of them. Nothing is left behind."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warfence.core.errors import InputError
from warfence.host.cuda import driver
from warfence_torch.tools.graphs.driver import asked
from warfence_torch.tools.graphs.nodes import Listed

NOT_TO_CLONE = ("allocation", "free", "conditional")
Seam = tuple[Sequence[int], Sequence[int]]


class Copy:
    """A clone of one graph. Positions are those of the listed nodes. It ends with the object, or by `close`."""

    def __init__(self, listed: Listed) -> None:
        """InputError, with the node that is to blame, where the driver refuses to clone."""
        cu = driver()
        status, clone = cu.cuGraphClone(listed.raw)
        if int(status):
            blame = [node for node in listed.nodes if node.kind in NOT_TO_CLONE]
            named = f"; node {blame[0].position} ({blame[0].kind}) is of a kind that cannot be cloned" if blame else ""
            raise InputError(f"the CUDA driver refuses to clone the graph ({status.name}){named}")
        self._listed, self._clone = listed, clone
        self._executable: Any = None
        self._kept: list[Any] = []
        self._end = weakref.finalize(self, _destroy, clone, self._kept)
        self._end.atexit = False  # the process takes the whole driver with it

    def put_copy(self, seam: Seam, source: Tensor, target: Tensor) -> None:
        """Put in a node that copies a contiguous tensor over another one of its size."""
        cu = driver()
        params = cu.CUDA_MEMCPY3D()
        for side, t in (("src", source), ("dst", target)):
            where = cu.CUmemorytype.CU_MEMORYTYPE_DEVICE if t.is_cuda else cu.CUmemorytype.CU_MEMORYTYPE_HOST
            setattr(params, f"{side}MemoryType", where)
            setattr(params, f"{side}Device" if t.is_cuda else f"{side}Host", t.data_ptr())
        params.WidthInBytes = target.numel() * target.element_size()
        params.Height = params.Depth = 1
        context = asked(cu.cuCtxGetCurrent(), "name the current context")
        behind = self._handles(seam[0])
        node = asked(cu.cuGraphAddMemcpyNode(self._clone, behind, len(behind), params, context), "add a copying node")
        self._before(node, seam[1])

    def put_gate(self, seam: Seam, reached: int, gate: int) -> None:
        """Put in a node that writes 1 to the word at one address, and then waits until that at the other is at least 1."""
        cu = driver()
        write, wait = cu.CUstreamBatchMemOpParams(), cu.CUstreamBatchMemOpParams()
        kinds = cu.CUstreamBatchMemOpType
        for one, kind, address, flags in (
            (write, kinds.CU_STREAM_MEM_OP_WRITE_VALUE_32, reached, 0),
            (
                wait,
                kinds.CU_STREAM_MEM_OP_WAIT_VALUE_32,
                gate,
                int(cu.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ),
            ),
        ):
            one.operation = kind
            value = one.writeValue if one is write else one.waitValue
            value.operation = kind
            value.address = cu.CUdeviceptr(address)
            value.value = cu.cuuint32_t(1)
            value.flags = flags
        params = cu.CUDA_BATCH_MEM_OP_NODE_PARAMS()
        params.ctx = asked(cu.cuCtxGetCurrent(), "name the current context")
        params.count, params.paramArray, params.flags = 2, [write, wait], 0
        behind = self._handles(seam[0])
        node = asked(cu.cuGraphAddBatchMemOpNode(self._clone, behind, len(behind), params), "add a gate")
        self._before(node, seam[1])

    def put_record(self, behind: Sequence[int], event: torch.cuda.Event) -> None:
        """Put in a node that records an event behind these nodes. Nothing waits for it."""
        put_record(self._clone, self._handles(behind), event)
        self._kept.append(event)

    def instantiate(self) -> None:
        """Make it executable. InputError where the driver refuses."""
        self._executable = asked(driver().cuGraphInstantiate(self._clone, 0), "instantiate the graph")
        self._kept.append(self._executable)

    def launch(self, stream: torch.cuda.Stream) -> None:
        """Enqueue it on a stream."""
        cu = driver()
        asked(cu.cuGraphLaunch(self._executable, cu.CUstream(stream.cuda_stream)), "launch the graph")

    def close(self) -> None:
        """Give everything back to the driver. Legal while a launch is under way: the driver ends it first."""
        self._end()

    def _handles(self, positions: Sequence[int]) -> list[Any]:
        found = driver().cuGraphNodeFindInClone
        return [asked(found(self._listed.handles[p], self._clone), "find a node in the clone") for p in positions]

    def _before(self, node: Any, followers: Sequence[int]) -> None:
        if followers:
            after = self._handles(followers)
            count = len(after)
            added = driver().cuGraphAddDependencies(self._clone, [node] * count, after, None, count)
            asked(added, "put a node before others")


def put_record(raw: Any, behind: list[Any], event: torch.cuda.Event) -> None:
    """Add a node that records the event to a driver's graph that was not instantiated yet. Keep the event as long."""
    cu = driver()
    handle = cu.CUevent(event.cuda_event)
    asked(cu.cuGraphAddEventRecordNode(raw, behind, len(behind), handle), "add a recording node")


def made_event(stream: torch.cuda.Stream) -> torch.cuda.Event:
    """An event that the driver knows: torch makes it at its first record."""
    event = torch.cuda.Event()
    event.record(stream)
    return event


def _destroy(clone: Any, kept: list[Any]) -> None:
    """In relaxed mode: another capture of this thread may be going on, and is not to be broken."""
    cu = driver()
    relaxed = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    _, mode = cu.cuThreadExchangeStreamCaptureMode(relaxed)
    try:
        for thing in kept:
            if isinstance(thing, cu.CUgraphExec):
                cu.cuGraphExecDestroy(thing)
        cu.cuGraphDestroy(clone)
    finally:
        cu.cuThreadExchangeStreamCaptureMode(mode)
        kept.clear()
