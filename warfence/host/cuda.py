"""The calls of the CUDA driver that waits by value, gates and streams of our own need. Needs `cuda-bindings`.

`cuStreamWaitValue32` with GEQ compares as a counter that wraps round, as `warfence.core.fence.reached` does. It is captured as a
node, occupies no SM, and takes memory of the device as well as pinned memory.
"""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from importlib.util import find_spec
from typing import Any

from warfence.core.errors import FenceError, InputError
from warfence.core.fence import AtLeast
from warfence.host.lanes import await_word

NO_BINDINGS = "the package cuda-bindings is not installed: pip install 'warfence[cuda]'"
NON_BLOCKING, PORTABLE_AND_MAPPED = (
    1,
    3,
)  # a stream that does not wait for the default one; memory that every context sees
GEQ = 0  # of the flags of a wait: at least, as a counter that wraps round
_THREAD = threading.local()


def missing() -> str:
    """Why there are no bindings here; "" where there are. Imports nothing."""
    return "" if find_spec("cuda") is not None and find_spec("cuda.bindings") is not None else NO_BINDINGS


@cache
def driver() -> Any:
    """The CUDA driver bindings; InputError with the remedy when they are not installed."""
    try:
        from cuda.bindings import driver as cuda_driver  # type: ignore[import-not-found]
    except ImportError as error:
        raise InputError(f"waits on words of memory need cuda-bindings, and {NO_BINDINGS}") from error
    return cuda_driver


def checked(result: Any) -> Any:
    """What a call gave; FenceError with its status where it failed."""
    status, *values = result if isinstance(result, tuple) else (result,)
    if int(status) != 0:
        raise FenceError(f"CUDA driver call failed: {status}")
    return values[0] if len(values) == 1 else values


def use_device(number: int = 0) -> Any:
    """The bindings, with the primary context of a device current on this thread: the one that the frameworks use."""
    cu = driver()
    if getattr(_THREAD, "device", None) != number:
        checked(cu.cuInit(0))
        context = checked(cu.cuDevicePrimaryCtxRetain(checked(cu.cuDeviceGet(number))))
        checked(cu.cuCtxSetCurrent(context))
        _THREAD.device = number
    return cu


def new_stream() -> int:
    """The handle of a stream of our own."""
    return int(checked(use_device().cuStreamCreate(NON_BLOCKING)))


def pinned(nbytes: int) -> int:
    """The address of zeroed host memory that the device sees under the same address."""
    address = int(checked(use_device().cuMemHostAlloc(nbytes, PORTABLE_AND_MAPPED)))
    ctypes.memset(address, 0, nbytes)
    return address


def wait_value(stream: Any, address: int, value: int) -> None:
    """Later work of the stream (a handle) runs once the 32-bit word at the address is at least `value`, cyclically."""
    status = driver().cuStreamWaitValue32(stream, address, value, GEQ)
    if status[0]:
        checked(status)


def write_value(stream: Any, address: int, value: int) -> None:
    """Write a 32-bit word in the order of the stream (a handle)."""
    checked(driver().cuStreamWriteValue32(stream, address, value, 0))


class DeviceWord:
    """A word in memory of the device (`warfence.core.fence.Word`). Reading it takes a copy on a stream of its own.

    owner: whose launches it counts, for messages.
    """

    def __init__(self, address: int, owner: str, watchdog_s: float) -> None:
        self.address, self.owner, self.watchdog_s = address, owner, watchdog_s
        self._stream = new_stream()
        self._host = pinned(4)

    def count(self) -> int:
        """What it holds now. Waits for no other stream."""
        cu = use_device()
        checked(cu.cuMemcpyDtoHAsync(self._host, self.address, 4, cu.CUstream(self._stream)))
        checked(cu.cuStreamSynchronize(cu.CUstream(self._stream)))
        return ctypes.c_uint32.from_address(self._host).value

    def await_count(self, value: int) -> None:
        await_word(self.count, self.owner, value, self.watchdog_s)

    def release(self, value: int) -> None:
        """Let go of whoever waits for this value, whose launch never came."""
        cu = use_device()
        write_value(cu.CUstream(self._stream), self.address, value)
        checked(cu.cuStreamSynchronize(cu.CUstream(self._stream)))


def await_or_release(waited: AtLeast) -> None:
    """Block the host until the value is there. FenceError once the watchdog's time is over, and then no stream stands for it."""
    try:
        waited.synchronize()
    except FenceError:
        if isinstance(waited.word, DeviceWord):
            waited.word.release(waited.value)
        raise
