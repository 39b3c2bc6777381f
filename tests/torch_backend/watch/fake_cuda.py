"""torch.cuda without a device, for the order of calls alone: operations happen on the CPU at the call, replays do nothing.

Streams, events and captures follow CUDA's rules as far as a watch asks for them: which streams are captured, and whether
an event ever was recorded. What `cuda()` gives is taken for memory of a device; its allocator has one block of `replay.cuda`,
which it hands out again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from warfence_torch.tools.replay.cuda import BLOCK


class Stream:
    current: Any = None
    capturing: set[int] = set()  # noqa: RUF012 (one capture at a time, as in torch)
    made = 0

    def __init__(self, default: bool = False) -> None:
        self.device_index = 0
        self.stream_id = 0 if default else Stream.made + 1
        Stream.made += not default

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def wait_stream(self, other: Stream) -> None:
        event = Event()
        event.record(other)
        self.wait_event(event)

    def record_event(self) -> Event:
        event = Event()
        event.record(self)
        return event

    def query(self) -> bool:
        return True

    def synchronize(self) -> None: ...


class Event:
    def __init__(self, external: bool = False) -> None:
        self.cuda_event = 0
        self._external, self._captured = external, False

    def record(self, stream: Stream | None = None) -> None:
        self.cuda_event = 1
        self._captured = (stream or Stream.current).stream_id in Stream.capturing and not self._external

    def wait(self, stream: Stream | None = None) -> None:
        if self._captured:
            Stream.capturing.add((stream or Stream.current).stream_id)

    def query(self) -> bool:
        return True

    def synchronize(self) -> None: ...


class CUDAGraph:
    def capture_begin(self) -> None:
        Stream.capturing = {Stream.current.stream_id}

    def capture_end(self) -> None:
        Stream.capturing = set()

    def replay(self) -> None: ...

    def reset(self) -> None: ...


@contextmanager
def on_stream(stream: Stream) -> Iterator[None]:
    before, Stream.current = Stream.current, stream
    try:
        yield
    finally:
        Stream.current = before


@contextmanager
def graph(captured: CUDAGraph, pool: object = None, stream: Stream | None = None, **how: str) -> Iterator[None]:
    torch.cuda.synchronize()
    with on_stream(stream):
        captured.capture_begin()
        try:
            yield
        finally:
            captured.capture_end()


@contextmanager
def on_device(_: object) -> Iterator[None]:
    yield


def install(patch: pytest.MonkeyPatch) -> None:
    """Replace torch.cuda for as long as `patch` lasts."""
    Stream.current, Stream.capturing, Stream.made = Stream(default=True), set(), 0
    for name, value in {
        "Stream": Stream, "Event": Event, "CUDAGraph": CUDAGraph, "graph": graph, "stream": on_stream, "device": on_device,
        "current_stream": lambda device=None: Stream.current, "current_device": lambda: 0,
        "is_current_stream_capturing": lambda: Stream.current.stream_id in Stream.capturing,
        "synchronize": lambda device=None: None, "empty_cache": lambda: None,
    }.items():  # fmt: skip
        patch.setattr(torch.cuda, name, value)
    device: dict[int, torch.Tensor] = {}  # by address, and kept, so that no address is used twice
    pinned: dict[int, torch.Tensor] = {}

    def address(t: torch.Tensor) -> int:
        return t.untyped_storage().data_ptr()

    def pin(t: torch.Tensor) -> torch.Tensor:
        pinned[address(t)] = t
        return t

    def to_device(t: torch.Tensor) -> torch.Tensor:
        device[address(t)] = t
        return t

    patch.setattr(torch.Tensor, "is_cuda", property(lambda t: address(t) in device), raising=False)
    patch.setattr(torch.Tensor, "get_device", lambda t: 0 if t.is_cuda else -1, raising=False)
    patch.setattr(torch.Tensor, "is_pinned", lambda t: address(t) in pinned, raising=False)
    patch.setattr(torch.Tensor, "pin_memory", pin, raising=False)
    patch.setattr(torch.Tensor, "cuda", to_device, raising=False)
    block = to_device(torch.zeros(BLOCK, dtype=torch.int32))
    patch.setattr("warfence_torch.tools.replay.cuda.new_block", lambda: block)
