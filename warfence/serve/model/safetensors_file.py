"""A reader of one ``*.safetensors`` file into float32 numpy arrays.

The format: eight bytes little-endian header length, a JSON header ``{name: {dtype, shape, data_offsets}}``, then the
data, little-endian and row-major. ``safetensors.numpy`` needs another package for bfloat16, which numpy does not have;
a bfloat16 is the upper half of a float32, so one line decodes it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warfence.core.errors import InputError

F32Array = NDArray[np.float32]
_BYTES = {"F32": 4, "F16": 2, "BF16": 2}
_HEADER_LIMIT = 100_000_000  # the limit of the format's own implementation


def read_safetensors(path: Path) -> dict[str, F32Array]:
    """Read every tensor of ``path`` as a C-contiguous float32 array of its own memory.

    Raises ``InputError`` when the file is absent, truncated, not of this format, or holds a type that is not
    F32, F16 or BF16.
    """
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
    except (OSError, ValueError) as cause:
        raise InputError(f"cannot read the weights '{path}': {cause}; copy the file again") from cause
    header, start = _header(path, data)
    tensors: dict[str, F32Array] = {}
    for name, entry in header.items():
        if name != "__metadata__":
            tensors[name] = _tensor(path, name, entry, data[start:])
    return tensors


def bfloat16_to_float32(bits: NDArray[np.uint16]) -> F32Array:
    """Widen bfloat16 bit patterns, any shape, exactly."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def float32_to_bfloat16(values: F32Array) -> NDArray[np.uint16]:
    """Round finite float32 values to bfloat16 bit patterns, to nearest, ties to even. For tests and tools."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def _header(path: Path, data: NDArray[np.uint8]) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(data[:8].tobytes(), "little") if data.size >= 8 else _HEADER_LIMIT + 1
    if length > min(data.size - 8, _HEADER_LIMIT):
        raise _corrupt(path, f"a header of {length} bytes does not fit into a file of {data.size}")
    try:
        header = json.loads(data[8 : 8 + length].tobytes())
    except ValueError as cause:
        raise _corrupt(path, f"the header is no JSON ({cause})") from cause
    if not isinstance(header, dict):
        raise _corrupt(path, "the header is no JSON object")
    return header, 8 + length


def _tensor(path: Path, name: str, entry: Any, data: NDArray[np.uint8]) -> F32Array:
    try:
        kind, shape, (begin, end) = (
            str(entry["dtype"]),
            tuple(map(int, entry["shape"])),
            map(int, entry["data_offsets"]),
        )
    except (KeyError, TypeError, ValueError) as cause:
        raise _corrupt(path, f"the header entry of '{name}' is malformed") from cause
    if kind not in _BYTES:
        raise InputError(f"'{path}': tensor '{name}' has type {kind}; allowed are {', '.join(_BYTES)}")
    size = math.prod(shape) * _BYTES[kind]
    if not 0 <= begin <= end <= data.size or end - begin != size or min(shape, default=0) < 0:
        raise _corrupt(path, f"tensor '{name}' of shape {list(shape)} lies at bytes {begin} to {end} of {data.size}")
    raw = data[begin:end].tobytes()
    if kind == "BF16":
        return bfloat16_to_float32(np.frombuffer(raw, "<u2")).reshape(shape)
    return np.frombuffer(raw, "<f4" if kind == "F32" else "<f2").astype(np.float32).reshape(shape)


def _corrupt(path: Path, what: str) -> InputError:
    return InputError(f"'{path}' is corrupt: {what}; copy or download the file again")
