"""The few calls that tests of `torch.cuda` under watch are written in, for what no scenario can say: forks inside a graph,
failed captures, what an operation makes the host wait for, streams that the allocator knows.

A lane is a name: F forward, S schedule, P plan, C result copy, X transfer. A step of a graph is a function, or an event
that the graph itself records there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from warfence_torch.tools.capture import capturing

LANES = {"F": "forward", "S": "schedule", "P": "plan", "C": "copy", "X": "transfer"}
SHARED = ("t", "map", "kv", "m")
CELLS = 64
BLOCK = 100_000  # float32 of a block that the allocator hands out; like no other size here
Work = Callable[[], object]


class CudaStand:
    """Streams; a graph is a CUDA graph. As in a server, graphs are made at the start, and the device is idle after it."""

    def __init__(self) -> None:
        self.shared = {name: torch.zeros(CELLS).cuda() for name in SHARED}
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
