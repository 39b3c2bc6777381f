"""A reader of one ``*.safetensors`` file into float32 numpy arrays.

The format's own library checks the file and gives raw bytes, without a framework. Its numpy half needs another package for
bfloat16, which numpy does not have; a bfloat16 is the upper half of a float32, so one line decodes it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize

from warfence.core.errors import InputError
from warfence.host.files import read_input

F32Array = NDArray[np.float32]
_STORED = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def read_safetensors(path: Path) -> dict[str, F32Array]:
    """Read every tensor of ``path`` as a C-contiguous float32 array of its own memory.

    Raises ``InputError`` when the file is absent, truncated, not of this format, or holds a type that is not
    F32, F16 or BF16.
    """
    try:
        entries = deserialize(read_input(path, f"the weights '{path}'", "copy the file again"))  # type: ignore[no-untyped-call]
    except SafetensorError as cause:
        said = str(cause).removeprefix("Error while deserializing: ")
        raise InputError(f"'{path}' is corrupt: {said}; copy or download the file again") from cause
    tensors: dict[str, F32Array] = {}
    while entries:  # let go of the raw bytes one by one
        name, entry = entries.pop()
        if entry["dtype"] not in _STORED:
            raise InputError(f"'{path}': tensor '{name}' has type {entry['dtype']}; allowed are {', '.join(_STORED)}")
        stored = np.frombuffer(entry["data"], _STORED[entry["dtype"]]).reshape(entry["shape"])
        values = bfloat16_to_float32(stored) if entry["dtype"] == "BF16" else stored.astype(np.float32, copy=False)
        if not np.isfinite(values).all():
            raise InputError(f"'{path}': tensor '{name}' holds NaN or infinity; copy or download the file again")
        tensors[name] = values
    return tensors


def bfloat16_to_float32(bits: NDArray[np.uint16]) -> F32Array:
    """Widen bfloat16 bit patterns, any shape, exactly."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
