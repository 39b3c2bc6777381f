"""CUDA streams under watch: the calls of torch.cuda that order streams and host, and graphs.

A wait that nothing recorded for stays in the log as a wait: that is what the checker is to find.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from warfence.races.check.events import Event
from warfence_torch.tools.callers import caller_lines
from warfence_torch.tools.watching.captured_nodes import CapturedNodes
from warfence_torch.tools.watching.graphs import Graphs
from warfence_torch.tools.watching.journal import Journal
from warfence_torch.tools.watching.memory import Memory
from warfence_torch.tools.watching.patches import Patches


class CudaLanes:
    """Notes records, waits, synchronisations, captures and replays. names: the user's names of streams."""

    def __init__(self, journal: Journal, names: dict[tuple[int, int], str], memory: Memory) -> None:
        self._journal, self._given = journal, names
        self._graphs = Graphs(journal)
        self._nodes = CapturedNodes(journal, memory)
        self._lanes: dict[tuple[int, int], str] = {}  # by device and stream id: stream objects come and go
        self._recorded: set[str] = set()  # events whose record was seen, in a capture or not
        self._thread = threading.local()

    def install(self, patches: Patches) -> None:
        patches.wrap(torch.cuda.Event, "record", self._record)
        patches.wrap(torch.cuda.Event, "wait", self._wait)
        patches.wrap(torch.cuda.Event, "query", self._ask_event)
        patches.wrap(torch.cuda.Event, "synchronize", self._block_for_event)
        patches.wrap(torch.cuda.Stream, "wait_stream", self._wait_stream)
        patches.wrap(torch.cuda.Stream, "query", self._ask_stream)
        patches.wrap(torch.cuda.Stream, "synchronize", self._block_for_stream)
        patches.wrap(torch.cuda, "synchronize", self._block_for_all)
        patches.wrap(torch.cuda.CUDAGraph, "capture_begin", self._capture_begin)
        patches.wrap(torch.cuda.CUDAGraph, "capture_end", self._capture_end)
        patches.wrap(torch.cuda.CUDAGraph, "reset", self._reset)
        patches.wrap(torch.cuda.CUDAGraph, "replay", self._replay)

    # -- for the operations

    def device_of(self, tensors: Iterable[Tensor]) -> int | None:
        """The index of the CUDA device that an operation with these tensors runs on; None: it runs on the host."""
        for t in tensors:
            if t.is_cuda:
                return t.get_device()
        return None

    def name(self, stream: Any) -> str:
        """The lane of a stream."""
        key = (stream.device_index, stream.stream_id)
        if key not in self._lanes:
            device = f" of device {key[0]}" if key[0] else ""
            otherwise = f"default{device}" if key[1] == 0 else f"stream{device} "
            self._lanes[key] = self._journal.name(key, self._given.get(key, otherwise))
        return self._lanes[key]

    def append(self, event: Event) -> None:
        """An access on the current stream: into the graph that is being captured there, else into the log."""
        self._append(event, self.capturing)

    @property
    def capturing(self) -> bool:
        """Whether what is enqueued on the current stream goes into a graph."""
        return self._graphs.capture is not None and torch.cuda.is_current_stream_capturing()

    @property
    def sees_nodes(self) -> bool:
        """Whether what is enqueued on the current stream becomes nodes that are looked at."""
        return self._nodes.usable and self.capturing

    def take_nodes(self) -> None:
        """Note what was captured since the last operation, and not by one: other libraries' kernels, compiled code."""
        if self._graphs.capture is not None and self._nodes.usable and torch.cuda.is_current_stream_capturing():
            stream = torch.cuda.current_stream()
            self._graphs.capture.steps.extend(self._nodes.take(stream.cuda_stream, self.name(stream)))

    def skip_nodes(self) -> None:
        """What was captured since then is of an operation that was seen."""
        if self._graphs.capture is not None and self._nodes.usable and torch.cuda.is_current_stream_capturing():
            self._nodes.skip(torch.cuda.current_stream().cuda_stream)

    def forget(self) -> None:
        """Let go of all graphs: the watch has ended."""
        self._graphs.forget()

    def host_waited(self, device: int) -> None:
        """The host waited for all that is enqueued on the current stream."""
        self._journal.waited(caller_lines(), other=self.name(torch.cuda.current_stream(device)))

    # -- instead of torch's

    def _record(self, original: Callable[..., None], event: Any, stream: Any = None) -> None:
        stream = stream if stream is not None else torch.cuda.current_stream()
        self.take_nodes()
        original(event, stream)
        self.skip_nodes()
        if not self._muted:
            name, captured = self._event(event), self._capturing(stream)
            self._recorded.add(name)
            generation = 0 if captured else self._journal.generation(name)
            noted = Event("record", self.name(stream), event=name, generation=generation, where=caller_lines())
            self._append(noted, captured)

    def _wait(self, original: Callable[..., None], event: Any, stream: Any = None) -> None:
        stream = stream if stream is not None else torch.cuda.current_stream()
        known = not self._muted and self._known(event)
        self.take_nodes()
        original(event, stream)
        self.skip_nodes()
        if known:
            noted = Event("wait", self.name(stream), event=self._event(event), where=caller_lines())
            self._append(noted, self._capturing(stream))

    def _wait_stream(self, original: Callable[..., None], stream: Any, other: Any) -> None:
        with self._mute():
            original(stream, other)
        noted = Event("wait_lane", self.name(stream), other=self.name(other), where=caller_lines())
        self._append(noted, self._capturing(stream))

    def _ask_event(self, original: Callable[..., bool], event: Any) -> bool:
        done = original(event)
        if done and self._event(event) in self._recorded:
            self._journal.waited(caller_lines(), event=self._event(event))
        return done

    def _block_for_event(self, original: Callable[..., None], event: Any) -> None:
        known = self._known(event)
        original(event)
        if known:
            self._journal.waited(caller_lines(), event=self._event(event))

    def _ask_stream(self, original: Callable[..., bool], stream: Any) -> bool:
        done = original(stream)
        if done:
            self._journal.waited(caller_lines(), other=self.name(stream))
        return done

    def _block_for_stream(self, original: Callable[..., None], stream: Any) -> None:
        original(stream)
        self._journal.waited(caller_lines(), other=self.name(stream))

    def _block_for_all(self, original: Callable[..., None], device: Any = None) -> None:
        original(device)
        with torch.cuda.device(device):
            index = torch.cuda.current_device()
        for key, lane in tuple(self._lanes.items()):
            if key[0] == index:
                self._journal.waited(caller_lines(), other=lane)

    def _capture_begin(self, original: Callable[..., None], graph: Any, *args: Any, **kwargs: Any) -> None:
        original(graph, *args, **kwargs)
        self._nodes.begin()
        self._graphs.begin(graph, self.name(torch.cuda.current_stream()))

    def _capture_end(self, original: Callable[..., None], graph: Any) -> None:
        complete = False
        self.take_nodes()
        try:
            original(graph)
            complete = True
        finally:
            self._graphs.end(complete)

    def _reset(self, original: Callable[..., None], graph: Any) -> None:
        original(graph)
        self._graphs.reset(graph)

    def _replay(self, original: Callable[..., None], graph: Any) -> None:
        original(graph)
        self._graphs.replay(graph, self.name(torch.cuda.current_stream()), caller_lines)

    # -- inside

    def _append(self, event: Event, captured: bool) -> None:
        if captured and self._graphs.capture is not None:
            self._graphs.capture.steps.append(event)
        else:
            self._journal.append(event)

    def _capturing(self, stream: Any) -> bool:
        if self._graphs.capture is None:
            return False
        with torch.cuda.stream(stream):
            return torch.cuda.is_current_stream_capturing()

    def _event(self, event: Any) -> str:
        return self._journal.name(event, "event ")

    def _known(self, event: Any) -> bool:
        """False for an event that already held a record when the watch began: what that covers is not in the log."""
        name = self._event(event)
        if name in self._recorded or not event.cuda_event:  # torch makes the driver's event at the first record
            return True
        self._journal.miss(f"What '{name}' orders by a record from before the watch began.")
        return False

    @property
    def _muted(self) -> bool:
        return getattr(self._thread, "muted", False)

    @contextmanager
    def _mute(self) -> Iterator[None]:
        """torch makes `wait_stream` of a record and a wait, which are not noted once more."""
        self._thread.muted = True
        try:
            yield
        finally:
            self._thread.muted = False
