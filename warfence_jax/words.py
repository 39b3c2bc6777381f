"""Values that travel together, as one vector of 32-bit words: the batch, what crosses devices, the outputs.

A transfer costs its latency, not its size (on an H200 machine about 55 us each, whether of 4 bytes or 16 KB).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, ShapeDtypeStruct
from jaxtyping import Int32

from warfence.core.batch import FLOAT, INT, Field
from warfence.core.errors import InputError

Fields = Mapping[str, Field]


def layout_of(shapes: Mapping[str, ShapeDtypeStruct]) -> dict[str, Field]:
    """Where each value lies in the words, in the order given. InputError for a value that is not of 32-bit words."""
    fields: dict[str, Field] = {}
    offset = 0
    for name, shape in shapes.items():
        dtype = str(jnp.dtype(shape.dtype))
        if dtype not in (INT, FLOAT):
            raise InputError(f"value '{name}' is of {dtype}; values that travel are {INT} or {FLOAT}")
        fields[name] = Field(offset, tuple(shape.shape), dtype)
        offset += prod(shape.shape)
    return fields


def pack(fields: Fields, known: Mapping[str, Array]) -> Int32[Array, " words"]:
    """The fields' values as words."""
    flat = [known[name].reshape(-1) for name in fields]
    words = [jax.lax.bitcast_convert_type(v, jnp.int32) if v.dtype == jnp.float32 else v for v in flat]
    return jnp.concatenate(words)


def unpack(fields: Fields, words: Int32[Array, " words"]) -> dict[str, Array]:
    """The values in the words. What nobody uses is dropped by the compiler."""
    values = {}
    for name, f in fields.items():
        flat = words[f.offset : f.offset + f.size]
        flat = jax.lax.bitcast_convert_type(flat, jnp.float32) if f.dtype == FLOAT else flat
        values[name] = flat.reshape(f.shape)
    return values


def view(fields: Fields, words: Int32[np.ndarray, " words"]) -> dict[str, np.ndarray]:
    """The values in words on the host, as views."""
    values = {}
    for name, f in fields.items():
        flat = words[f.offset : f.offset + f.size]
        values[name] = (flat.view(np.float32) if f.dtype == FLOAT else flat).reshape(f.shape)
    return values
