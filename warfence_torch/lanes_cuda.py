"""Lanes as CUDA streams, tickets as CUDA events."""

from __future__ import annotations

import time

import torch

from warfence.core.errors import FenceError
from warfence.core.fence import AtLeast, Ticket, TicketSource
from warfence.core.gates import WATCHDOG_S
from warfence.host.cuda import DeviceWord, await_or_release, driver, missing, wait_value

STAND_S = 2e-3  # how long a wait must stay unmet to be called standing; events become visible in microseconds
RING_DEPTH = 64  # records of a lane; in a step it makes two or three, and the host is at most two steps ahead
MOST_DRAWS = 64  # torch hands streams out of a pool of 32 and then starts again


class CudaEventSource:
    """A ticket source on a CUDA event: fresh for one record, or the external marker that each replay re-arms."""

    __slots__ = ("_launch", "event")

    def __init__(self, event: torch.cuda.Event) -> None:
        self.event = event
        self._launch: int | None = None

    def plant(self, stream: torch.cuda.Stream) -> None:
        """Record it on a stream that is being captured: a node of the graph."""
        self.event.record(stream)

    def armed(self, launch: int) -> CudaEventSource:
        """The event was recorded (or the graph that records it was launched) on behalf of `launch`."""
        self._launch = launch
        return self

    def recorded_for(self) -> int | None:
        return self._launch

    def done(self) -> bool:
        return bool(self.event.query())

    def synchronize(self) -> None:
        self.event.synchronize()


class CudaWord(DeviceWord):
    """The word of one captured forward: a graph node increments it behind the last shared read (a ticket by value)."""

    def __init__(self, owner: str) -> None:
        self._tensor = torch.zeros(1, dtype=torch.int32, device="cuda")
        torch.cuda.synchronize()  # zeroed, whatever stream comes first
        super().__init__(self._tensor.data_ptr(), owner, WATCHDOG_S)

    def plant(self, stream: torch.cuda.Stream) -> None:
        """Increment it on the current stream, which is being captured."""
        self._tensor.add_(1)


class OnStream:
    """Makes a stream the current one. Kept by its lane and entered again and again, which `torch.cuda.stream` costs more for.

    Not to be entered while it is entered.
    """

    __slots__ = ("_before", "_stream")

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self._stream = stream
        self._before = stream

    def __enter__(self) -> None:
        self._before = torch.cuda.current_stream(self._stream.device_index)
        torch.cuda.set_stream(self._stream)

    def __exit__(self, *_: object) -> None:
        torch.cuda.set_stream(self._before)


class CudaLane:
    """One stream. Work is enqueued by whoever holds `stream`; only settle and synchronize block the host.

    Events are taken from a ring. A wait takes the event's state at the time of the call, so an event may be recorded again
    while others still wait for what it was; a ticket that is kept longer than the ring is deep is stale, and refused (law 4).
    """

    def __init__(self, name: str, stream: torch.cuda.Stream) -> None:
        self.name = name
        self.stream = stream
        self.current = OnStream(stream)
        self._last_wait: TicketSource | None = None
        self._handle = driver().CUstream(stream.cuda_stream) if not missing() else None
        self._by_value: AtLeast | None = None  # the newest wait on a word, whose launch may never come
        self._ring = [CudaEventSource(torch.cuda.Event()) for _ in range(RING_DEPTH)]
        self._next = 0

    def wait(self, ticket: Ticket) -> None:
        ticket.check()
        source = ticket.source
        if isinstance(source, CudaEventSource):
            self.stream.wait_event(source.event)
        elif isinstance(source, AtLeast) and isinstance(source.word, DeviceWord):
            wait_value(self._handle, source.word.address, source.value)
            self._by_value = source
        else:
            raise FenceError(f"lane '{self.name}': ticket of launch {ticket.launch} comes from another backend")
        self._last_wait = source

    def wait_lane(self, other: CudaLane) -> None:
        source = other.recorded(0)
        self.stream.wait_event(source.event)
        self._last_wait = source

    def record(self, launch: int) -> Ticket:
        return Ticket(launch, self.recorded(launch))

    def recorded(self, launch: int) -> CudaEventSource:
        """The next event of the ring, recorded here and now."""
        source = self._ring[self._next]
        self._next = (self._next + 1) % RING_DEPTH
        source.event.record(self.stream)
        return source.armed(launch)

    def settle(self, bound_s: float) -> bool:
        """Idle, or standing at its last wait, or out of time: only the driver knows what else blocks a stream.

        "Standing" is sound only while what it waits for is held (a closed gate) or over, as in a probe or a forced order.
        """
        start = time.perf_counter()
        while not self.stream.query():
            waited = time.perf_counter() - start
            stands = self._last_wait is not None and not self._last_wait.done()
            if waited > (min(STAND_S, bound_s) if stands else bound_s):
                return False
            time.sleep(50e-6)
        return True

    def synchronize(self) -> None:
        if self._by_value is not None:
            waited, self._by_value = self._by_value, None
            await_or_release(waited)
        self.stream.synchronize()

    def check(self) -> None:
        """A stream raises its failures itself, at the next call."""


def distinct_stream(taken: list[CudaLane]) -> torch.cuda.Stream:
    """A stream that no lane has: torch's pool may hand the same one out twice, which would silently end the overlap."""
    handles = {lane.stream.cuda_stream for lane in taken}
    for _ in range(MOST_DRAWS):
        stream = torch.cuda.Stream()
        if stream.cuda_stream not in handles:
            return stream
    raise FenceError(f"no distinct CUDA stream in {MOST_DRAWS} draws; lanes made so far: {len(taken)}")
