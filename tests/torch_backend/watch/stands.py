"""The few calls that the pairs are written in, on host lanes (CPU) and on CUDA streams.

A lane is a name: F forward, S schedule, P plan, C result copy, X transfer. A step of a graph is a function, or an event
that the graph itself records there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from warfence.host.lanes import HostEvent, WorkerLane
from warfence_torch.tools.capture import capturing

LANES = {"F": "forward", "S": "schedule", "P": "plan", "C": "copy", "X": "transfer"}
SHARED = ("t", "map", "kv", "m")
CELLS = 64
BLOCK = 100_000  # float32 of a block that the allocator hands out; like no other size here
Work = Callable[[], object]


class Stand(Protocol):
    """Where a program runs. shared: tables of CELLS float32 on the device. pin: as many in memory of the host."""

    shared: dict[str, Tensor]
    pin: Tensor
    names: dict[Any, str]

    def run(self, lane: str, work: Work) -> None: ...
    def event(self) -> Any: ...
    def marker(self) -> Any: ...  # an event that a graph records
    def record(self, lane: str, event: Any) -> None: ...
    def wait(self, lane: str, event: Any) -> None: ...
    def wait_lane(self, lane: str, other: str) -> None: ...
    def synchronize(self, event: Any) -> None: ...
    def ask(self, event: Any) -> None: ...  # until the answer is yes
    def capture(self, lane: str, *steps: Any) -> Any: ...
    def replay(self, lane: str, graph: Any) -> None: ...
    def allocate(self, lane: str) -> Tensor: ...  # and write, there; on CUDA alone
    def close(self) -> None: ...


class HostStand:
    """Worker lanes; a graph is a list of steps that a lane's thread goes through."""

    def __init__(self) -> None:
        self.shared = {name: torch.zeros(CELLS) for name in SHARED}
        self.pin = torch.zeros(CELLS)
        self.names: dict[Any, str] = {}
        self._lanes = {lane: WorkerLane(name) for lane, name in LANES.items()}
        self._launches = 0

    def run(self, lane: str, work: Work) -> None:
        self._lanes[lane].submit(lambda: void(work()))

    def event(self) -> HostEvent:
        return HostEvent()

    marker = event

    def record(self, lane: str, event: HostEvent) -> None:
        generation = event.arm(self._launches)
        self._lanes[lane].submit(lambda: event.complete(generation))

    def wait(self, lane: str, event: HostEvent) -> None:
        self._lanes[lane].wait_source(event)

    def wait_lane(self, lane: str, other: str) -> None:
        self._lanes[lane].wait_lane(self._lanes[other])

    def synchronize(self, event: HostEvent) -> None:
        event.synchronize()

    def ask(self, event: HostEvent) -> None:
        while not event.done():
            pass

    def capture(self, lane: str, *steps: Any) -> tuple[Any, ...]:
        return steps

    def replay(self, lane: str, graph: tuple[Any, ...]) -> None:
        self._launches += 1
        armed = {step: step.arm(self._launches) for step in graph if isinstance(step, HostEvent)}

        def work() -> None:
            for step in graph:
                if isinstance(step, HostEvent):
                    step.complete(armed[step])
                else:
                    step()

        self._lanes[lane].submit(work)

    def allocate(self, lane: str) -> Tensor:
        raise NotImplementedError("which block the C library hands out next is not ours to say")

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.close()


class CudaStand:
    """Streams; a graph is a CUDA graph. As in a server, graphs are made at the start, and the device is idle after it."""

    def __init__(self, device: str = "cuda") -> None:
        self.shared = {name: torch.zeros(CELLS, device=device) for name in SHARED}
        self.pin = torch.zeros(CELLS).pin_memory()
        self._streams = {lane: torch.cuda.Stream() for lane in LANES}
        self.names = {self._streams[lane]: name for lane, name in LANES.items()}
        self.shared["t"].zero_().copy_(self.shared["m"]).fill_(0.0).sum()  # no kernel is to be loaded within a capture
        torch.cuda.synchronize()

    def run(self, lane: str, work: Work) -> None:
        with torch.cuda.stream(self._streams[lane]):
            work()

    def event(self) -> Any:
        return torch.cuda.Event()

    def marker(self) -> Any:
        return torch.cuda.Event(external=True)

    def record(self, lane: str, event: Any) -> None:
        event.record(self._streams[lane])

    def wait(self, lane: str, event: Any) -> None:
        self._streams[lane].wait_event(event)

    def wait_lane(self, lane: str, other: str) -> None:
        self._streams[lane].wait_stream(self._streams[other])

    def synchronize(self, event: Any) -> None:
        event.synchronize()

    def ask(self, event: Any) -> None:
        while not event.query():
            pass

    def capture(self, lane: str, *steps: Any) -> Any:
        graph = torch.cuda.CUDAGraph()
        with capturing(graph, self._streams[lane]):
            for step in steps:
                if callable(step):
                    step()
                else:
                    step.record(self._streams[lane])
        torch.cuda.synchronize()
        return graph

    def replay(self, lane: str, graph: Any) -> None:
        with torch.cuda.stream(self._streams[lane]):
            graph.replay()

    def allocate(self, lane: str) -> Tensor:
        with torch.cuda.stream(self._streams[lane]):
            return torch.ones(BLOCK, device="cuda")

    def close(self) -> None:
        torch.cuda.synchronize()


def void(_: object) -> None:
    """Drop a result."""


def make_stand(device: str) -> Stand:
    return HostStand() if device == "cpu" else CudaStand()
