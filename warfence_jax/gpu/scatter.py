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
TYPES = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)


def scatter(table: int, words: int, count: int, stream: Any) -> None:
    """Enqueue table[words[i]] = words[count + i] for i < count. Addresses; the words may be pinned host memory."""
    cu = use_device()
    blocks = (count + THREADS - 1) // THREADS
    arguments = ((table, words, count), TYPES)
    checked(cu.cuLaunchKernel(_kernel(), blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, 0))


@cache
def _kernel() -> Any:
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
