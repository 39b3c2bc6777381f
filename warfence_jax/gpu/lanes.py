"""Lanes where the tables are on the device: streams of our own for the schedule, and XLA's one compute stream for forwards.

An execution is on XLA's stream when the call that dispatches it has returned, so a record or a wait from the host stands behind
or before it, as on any stream (measured on an H200, jax 0.11.2). A buffer callback tells the
handle of that stream, once.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, Device, ShapeDtypeStruct
from jax.experimental.buffer_callback import buffer_callback

from warfence.core.errors import FenceError, WarfenceError
from warfence.core.fence import AtLeast, Ticket, TicketSource
from warfence.host.cuda import DeviceWord, await_or_release, checked, use_device, wait_value
from warfence_jax.tokens import Promise

Dispatch = Callable[[Array, Array], Array | None]
RING_DEPTH = 64  # records of a lane; the host is at most two steps ahead
STAND_S = 2e-3  # how long a wait must stay unmet to be called standing
POLL_S = 50e-6
NO_TIMING, TIMED = 2, 0  # flags of an event


class StreamEvent:
    """A ticket source on an event of the driver, or the marker that XLA's own graph records (`TicketSource`)."""

    __slots__ = ("_launch", "failure", "handle")

    def __init__(self, timed: bool = False) -> None:
        self.handle = checked(use_device().cuEventCreate(TIMED if timed else NO_TIMING))
        self._launch: int | None = None
        self.failure: Exception | None = None  # of the callback that was to record it

    def armed(self, launch: int) -> StreamEvent:
        """The event was recorded on behalf of `launch`."""
        self._launch = launch
        return self

    def recorded_for(self) -> int | None:
        return self._launch

    def done(self) -> bool:
        return int(use_device().cuEventQuery(self.handle)[0]) == 0

    def synchronize(self) -> None:
        checked(use_device().cuEventSynchronize(self.handle))


class StreamLane:
    """One stream. Work is enqueued by whoever holds `stream`; only settle and synchronize block the host."""

    def __init__(self, name: str, stream: int) -> None:
        self.name, self.stream = name, stream
        self._handle = use_device().CUstream(stream)
        self._ring = [StreamEvent() for _ in range(RING_DEPTH)]
        self._next = 0
        self._last_wait: TicketSource | None = None
        self._by_value: AtLeast | None = None  # the newest wait on a word, whose launch may never come
        self._failure: BaseException | None = None
        self._closed = False

    def wait(self, ticket: Ticket) -> None:
        self.check()
        ticket.check()
        source = ticket.source
        if isinstance(source, AtLeast) and isinstance(source.word, DeviceWord):
            wait_value(self._handle, source.word.address, source.value)
            self._by_value = source
        elif isinstance(source, StreamEvent):
            checked(use_device().cuStreamWaitEvent(self._handle, source.handle, 0))
        else:
            raise FenceError(
                f"lane '{self.name}': the ticket of launch {ticket.launch} was recorded on a {type(source).__name__}, not on a "
                f"stream or a word of the device: a foreign ticket is refused"
            )
        self._last_wait = source

    def wait_lane(self, other: StreamLane) -> None:
        self.check()
        source = other.recorded(0)
        checked(use_device().cuStreamWaitEvent(self._handle, source.handle, 0))
        self._last_wait = source

    def record(self, launch: int) -> Ticket:
        self.check()
        return Ticket(launch, self.recorded(launch))

    def recorded(self, launch: int) -> StreamEvent:
        """The next event of the ring, recorded here and now. One that is kept longer than the ring is deep is stale."""
        source = self._ring[self._next]
        self._next = (self._next + 1) % RING_DEPTH
        checked(use_device().cuEventRecord(source.handle, self._handle))
        return source.armed(launch)

    def settle(self, bound_s: float) -> bool:
        """Idle, or standing at its last wait, or out of time: only the driver knows what else blocks a stream."""
        start = time.perf_counter()
        while int(use_device().cuStreamQuery(self._handle)[0]) != 0:
            waited = time.perf_counter() - start
            stands = self._last_wait is not None and not self._last_wait.done()
            if waited > (min(STAND_S, bound_s) if stands else bound_s):
                return False
            time.sleep(POLL_S)
        return True

    def synchronize(self) -> None:
        if self._by_value is not None:
            waited, self._by_value = self._by_value, None
            await_or_release(waited)
        checked(use_device().cuStreamSynchronize(self._handle))
        self.check()

    def check(self) -> None:
        """Raise the failure of this lane, if there was one."""
        if isinstance(self._failure, WarfenceError):
            raise self._failure
        if self._failure is not None:
            raise FenceError(f"lane '{self.name}' failed: {self._failure}") from self._failure
        if self._closed:
            raise FenceError(f"lane '{self.name}' is closed")

    def newest(self) -> tuple[Promise, ...]:
        """Nothing: a stream has no tokens."""
        return ()

    def after(self, call: Callable[[], object]) -> None:
        """A stream has no thread: at once."""
        call()

    def close(self) -> None:
        """Nothing more is accepted. Safe to call twice."""
        self._closed = True


class XlaLane(StreamLane):
    """The forward lane: executables, dispatched by the caller onto XLA's stream."""

    def __init__(self, name: str, device: Device, on_failure: Callable[[], None]) -> None:
        super().__init__(name, xla_stream(device))
        self._zero = jax.device_put(np.int32(0), device)
        self._on_failure, self._enqueued = on_failure, 0
        self._awaited: list[Callable[[], object]] = []

    def enqueue(self, device: Device, dispatch: Dispatch, *, blocking: bool = False) -> Promise:
        """Run `dispatch(order, wait) -> token` here and now: the stream orders, so the two operands are zeros."""
        self.check()
        self._enqueued += 1
        promise = Promise((self.name, device), self._enqueued)
        try:
            promise.array = dispatch(self._zero, self._zero)
        except BaseException as error:
            self._failure = error
            self._on_failure()
            raise
        finally:
            promise.keep()
        return promise

    def await_compiled(self, call: Callable[[], object]) -> None:
        """Something that is being compiled, which `synchronize` waits for."""
        self._awaited.append(call)

    def synchronize(self) -> None:
        awaited, self._awaited = self._awaited, []
        for call in awaited:
            call()
        super().synchronize()


def xla_stream(device: Device) -> int:
    """The handle of XLA's compute stream on a device."""
    seen: list[int] = []

    def note(context: object, out: object, given: object) -> None:
        seen.append(int(context.stream))  # type: ignore[attr-defined]

    shape = ShapeDtypeStruct((1,), jnp.int32)
    call = buffer_callback(note, shape, input_output_aliases={0: 0}, has_side_effect=True)
    jax.jit(call)(jax.device_put(np.zeros(1, np.int32), device)).block_until_ready()
    return seen[-1]
