"""Scenarios on CUDA: streams, events, and a graph for each executable of a launch.

An access is a copy: a read into memory of its own, a write from a constant. All these, the graphs, and the blocks that the
caching allocator is to hand out are made before the first call, when the device is idle: what allocates or captures may
wait for the device, whose streams stand at gates later. Which blocks are handed out then is real.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from warfence.races.replay.host_cells import NO_DONATION
from warfence.races.replay.machine import Machine, Part, Seen, Stand, value_of
from warfence.races.replay.parts import donates, parts_of
from warfence.races.replay.sizes import lanes
from warfence.races.scenarios.operations import Memories, Op
from warfence.races.scenarios.steps import Trace
from warfence_torch.lanes_cuda import CudaLane, distinct_stream
from warfence_torch.tools.capture import capturing
from warfence_torch.tools.planting.stages import stage
from warfence_torch.tools.replay.gates_cuda import Awaited, NoGates, StreamGates

BLOCK = 100_000  # int32 of a block that the allocator hands out; like no other size here
CAPTURED = "a graph is captured with its addresses, before the block that it uses is handed out"


class CudaMachines:
    """Implements `warfence.races.replay.machine.Machines`. Streams are shared by all runs: a device has few queues for them."""

    name = "torch/cuda"
    guards = False

    def __init__(self) -> None:
        self._streams: list[CudaLane] = []

    def lacks(self, trace: Trace) -> str:
        if donates(trace):
            return NO_DONATION
        blocks = {op.reaches[0].memory for op in trace.ops if op.kind == "allocates"}
        captured = {one.memory for op in trace.ops for step in op.steps for one in step.reaches}
        return CAPTURED if blocks & captured else ""

    def make(self, trace: Trace, memories: Memories) -> Machine:
        names = lanes(trace)
        while len(self._streams) < len(names):
            self._streams.append(CudaLane(f"replay {len(self._streams)}", distinct_stream(self._streams)))
        on = {name: lane.stream for name, lane in zip(names, self._streams, strict=False)}
        return CudaMachine(trace, memories, on, CudaCells(trace, memories))


class CudaCells:
    """The memory of a trace, zeroed. device, pinned: by name. pool: what the host allocates, in turn, by name."""

    def __init__(self, trace: Trace, memories: Memories) -> None:
        kinds = memories.kind
        self.device = {name: _zeros(memories.size[name]).cuda() for name, kind in kinds.items() if kind != "pinned"}
        self.pinned = {
            name: _zeros(memories.size[name]).pin_memory() for name, kind in kinds.items() if kind == "pinned"
        }
        made = [op.reaches[0] for op in trace.ops if op.kind == "allocates" and op.lane == "host"]
        self.pool: dict[str, list[Tensor]] = {one.memory: [] for one in made}
        for one in made:
            self.pool[one.memory].append(_zeros(one.end).pin_memory())


class CudaMachine:
    """Implements `warfence.races.replay.machine.Machine`. ungated: its gates are open from the start, and not on the streams."""

    def __init__(
        self, trace: Trace, memories: Memories, streams: Mapping[str, torch.cuda.Stream], cells: CudaCells,
        ungated: bool = False,
    ) -> None:  # fmt: skip
        self.seen: Seen = {}
        self.refusals: list[tuple[int, str]] = []
        self._streams = streams
        self._memories = memories
        self._cells = {**cells.device, **cells.pinned}
        self._pool = {name: iter(blocks) for name, blocks in cells.pool.items()}
        calls = parts_of(trace)
        accesses = [part for call in calls for parts in call for part in parts if part.op.kind != "records"]
        on_streams = [part.id for part in accesses if part.step and part.op.lane != "host"]
        self.gates = NoGates() if ungated else StreamGates(on_streams)
        self._constants, self._results = _copies(accesses)
        in_graphs = {step.event for op in trace.ops for step in op.steps if step.kind == "records"}
        events = {step.event for step in trace.steps if step.event}
        self._events = {name: torch.cuda.Event(external=name in in_graphs) for name in events}
        self._awaited = Awaited([(op.event, op.number) for op in trace.ops if op.kind == "awaits"])
        self._records: Counter[str] = Counter()
        torch.cuda.synchronize()
        self._graphs = {
            id(parts[0].op): self._capture(trace.ops[parts[0].call].lane, parts)
            for call in calls
            for parts in call
            if trace.ops[parts[0].call].kind == "launch"
        }
        self._addresses: dict[str, int] = {}
        self._warm_up(trace)
        torch.cuda.synchronize()

    def launch(self, lane: str, executables: Sequence[Sequence[Part]]) -> None:
        stream = self._streams[lane]
        for parts in executables:
            for part in parts:
                self._check_names(part.op)
            with torch.cuda.stream(stream):
                if graph := self._graphs.get(id(parts[0].op)):
                    graph.replay()
                    self._records.update(part.op.event for part in parts if part.op.kind == "records")
                else:
                    self._enqueue(stream, parts)

    def host(self, part: Part) -> None:
        self._check_names(part.op)
        for at, one in enumerate(part.op.reaches):
            if one.verb == "reads":
                copy = self._cells[one.memory][one.begin : one.end].clone()  # an operation, which a watch sees
                self.seen[part.id, at] = tuple(copy.tolist())
        for one in part.op.reaches:
            if one.verb == "writes":
                self._cells[one.memory][one.begin : one.end].fill_(value_of(part.id))

    def record(self, lane: str, event: str) -> None:
        self._events[event].record(self._streams[lane])
        self._records[event] += 1
        self._awaited.record(self._streams[lane], event, self._records[event])

    def wait(self, lane: str, event: str, launch: int = 0) -> None:
        self._streams[lane].wait_event(self._events[event])

    def wait_lane(self, lane: str, other: str) -> None:
        self._streams[lane].wait_stream(self._streams[other])

    def await_record(self, lane: str, event: str, number: int) -> None:
        self._awaited.wait(self._streams[lane], event, number)

    def sync(self, event: str) -> Stand:
        return Stand(self._events[event].query, self._events[event].synchronize)

    def sync_lane(self, lane: str) -> Stand:
        event = self._streams[lane].record_event()
        return Stand(event.query, event.synchronize)

    def names(self, op: Op) -> None:
        if op.kind == "frees":
            del self._cells[op.memory]
        elif op.lane == "host":
            self._cells[op.reaches[0].memory] = next(self._pool[op.reaches[0].memory])
        else:
            self._allocate(op)

    def settle(self) -> str:
        return "" if all(stream.query() for stream in self._streams.values()) else "runtime"

    def count(self) -> int:
        return self.gates.count()

    def stands(self, lane: str) -> bool:
        return not self._streams[lane].query()

    def release(self) -> None:
        self.gates.release()
        self._awaited.release()

    def final(self) -> Mapping[str, tuple[int, ...]]:
        torch.cuda.synchronize()
        self.seen |= {key: tuple(result.tolist()) for key, result in self._results.items()}
        return {name: tuple(self._cells[name].tolist()) for name in self._memories.kind}

    def close(self) -> None:
        self.release()
        torch.cuda.synchronize()

    def _capture(self, lane: str, parts: Sequence[Part]) -> torch.cuda.CUDAGraph:
        graph, stream = torch.cuda.CUDAGraph(), self._streams[lane]
        with capturing(graph, stream):
            self._enqueue(stream, parts)
        return graph

    def _enqueue(self, stream: torch.cuda.Stream, parts: Sequence[Part]) -> None:
        """On the current stream, which is this one; inside a capture or not."""
        for part in parts:
            if part.op.kind == "records":
                self._events[part.op.event].record(stream)
                self._awaited.record(stream, part.op.event, 0 if part.step is None else part.step.number)
                continue
            self.gates.enqueue(part.id, stream)
            with stage(part.name):
                self._copy(part)
            self.gates.enqueue_done(part.id, stream)

    def _copy(self, part: Part) -> None:
        for at, one in enumerate(part.op.reaches):
            if one.verb == "reads":
                self._results[part.id, at].copy_(self._cells[one.memory][one.begin : one.end], non_blocking=True)
        for at, one in enumerate(part.op.reaches):
            if one.verb == "writes":
                self._cells[one.memory][one.begin : one.end].copy_(self._constants[part.id, at], non_blocking=True)

    def _allocate(self, op: Op) -> None:
        name = op.reaches[0].memory
        with torch.cuda.stream(self._streams[op.lane]):
            block = new_block()
        if op.memory and block.data_ptr() != self._addresses[op.memory]:
            raise RuntimeError(f"the allocator handed out another block for '{name}' than that of '{op.memory}'")
        self._addresses[name] = block.data_ptr()
        self._cells[name] = block[: op.reaches[0].end]

    def _warm_up(self, trace: Trace) -> None:
        """Leave the allocator just the blocks, zeroed, that it is to hand out, on the stream that will ask for them."""
        torch.cuda.empty_cache()
        wanted = Counter(op.lane for op in trace.ops if op.kind == "allocates" and op.lane != "host" and not op.memory)
        kept = []
        for lane, many in wanted.items():
            with torch.cuda.stream(self._streams[lane]):
                kept += [new_block().zero_() for _ in range(many)]
        torch.cuda.synchronize()
        kept.clear()

    def _check_names(self, op: Op) -> None:
        for one in op.reaches:
            if one.memory not in self._cells:
                raise NameError(f"the block '{one.memory}' is gone: its last name was dropped")


def new_block() -> Tensor:
    """A block that the caching allocator hands out on the current stream."""
    return torch.empty(BLOCK, dtype=torch.int32, device="cuda")


def _zeros(size: int) -> Tensor:
    return torch.zeros(size, dtype=torch.int32)


def _copies(accesses: Sequence[Part]) -> tuple[dict[tuple[int, int], Tensor], dict[tuple[int, int], Tensor]]:
    """By (step, which of its accesses): the constants that writes leave, and room for what reads see."""
    constants, results = {}, {}
    for part in accesses:
        for at, one in enumerate(part.op.reaches if part.op.lane != "host" else ()):
            size = one.end - one.begin
            if one.verb == "writes":
                constants[part.id, at] = torch.full((size,), value_of(part.id), dtype=torch.int32).cuda()
            elif one.verb == "reads":
                results[part.id, at] = _zeros(size).cuda()
    return constants, results
