"""A scatter kernel of eight lines, compiled by NVRTC: a schedule stream writes a table without a second framework."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from warfence.core.errors import FenceError
from warfence.host.cuda import checked, use_device

SOURCE = b"""
extern "C" __global__ void scatter(int* table, const int* words, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) table[words[i]] = words[count + i];
}
"""
THREADS = 256


class Scatter:
    """table[words[i]] = words[count + i] for i < count. Its arguments stay in one place: to pass them anew costs as much as a
    launch. The words may be pinned host memory."""

    def __init__(self, words: int) -> None:
        self._table, self._words, self._count = ctypes.c_void_p(0), ctypes.c_void_p(words), ctypes.c_int(0)
        places = (ctypes.addressof(one) for one in (self._table, self._words, self._count))
        self._arguments = (ctypes.c_void_p * 3)(*places)
        self._at = ctypes.addressof(self._arguments)
        self._kernel, self._launch = kernel(), use_device().cuLaunchKernel

    def launch(self, table: int, count: int, stream: Any) -> None:
        """Enqueue it on a stream (a handle). table: an address. The driver copies the arguments before this returns."""
        self._table.value, self._count.value = table, count
        blocks = (count + THREADS - 1) // THREADS
        status = self._launch(self._kernel, blocks, 1, 1, THREADS, 1, 1, 0, stream, self._at, 0)
        if status[0]:
            checked(status)


@cache
def kernel() -> Any:
    """The function, compiled for this device."""
    from cuda.bindings import nvrtc  # type: ignore[import-not-found]

    cu = use_device()
    device = checked(cu.cuCtxGetDevice())
    attribute = cu.CUdevice_attribute
    major = checked(cu.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = checked(cu.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    program = checked(nvrtc.nvrtcCreateProgram(SOURCE, b"scatter.cu", 0, [], []))
    options = [f"--gpu-architecture=sm_{major}{minor}".encode()]
    if int(nvrtc.nvrtcCompileProgram(program, len(options), options)[0]) != 0:
        log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise FenceError(f"the scatter kernel does not compile: {log.decode(errors='replace').strip()}")
    cubin = b" " * checked(nvrtc.nvrtcGetCUBINSize(program))
    checked(nvrtc.nvrtcGetCUBIN(program, cubin))
    return checked(cu.cuModuleGetFunction(checked(cu.cuModuleLoadData(cubin)), b"scatter"))
