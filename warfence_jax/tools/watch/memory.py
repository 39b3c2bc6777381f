"""Numpy arrays that device arrays may alias, by address, and read-only while they are watched.

`device_put` aliases a numpy array that starts at a multiple of 64 bytes, `from_dlpack` any, and a jitted call its numpy
arguments (jax-ml/jax #37830). Which array is aliased is asked by address, not by who made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from jax import Array
from numpy.lib.array_utils import byte_bounds

from warfence.core.errors import InputError


class Span(NamedTuple):
    """Bytes [begin, end) of a watched array."""

    resource: str
    begin: int
    end: int


class HostMemory:
    """The arrays that are watched. All of them are read-only but inside `writable`."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}
        self._were: dict[str, bool] = {}

    def guard(self, array: np.ndarray, name: str) -> None:
        """Watch an array from here on. InputError for a name, or memory, that is watched already."""
        if name in self._arrays:
            raise InputError(f"'{name}' is watched already; give every array a name of its own")
        if overlapping := [n for n, other in self._arrays.items() if np.shares_memory(array, other)]:
            raise InputError(f"'{name}' shares memory with '{overlapping[0]}'; watch the array that owns it, once")
        self._arrays[name], self._were[name] = array, bool(array.flags.writeable)
        array.flags.writeable = False

    def at(self, address: int, nbytes: int) -> Span | None:
        """Where these bytes lie in the watched arrays; None: nowhere."""
        for name, array in self._arrays.items():
            low, high = byte_bounds(array)
            if low < address + nbytes and address < high:
                return Span(name, max(address, low) - low, min(address + nbytes, high) - low)
        return None

    def of(self, array: np.ndarray | Array) -> Span | None:
        """The same, of an array. A device array of another device, or of several, aliases none."""
        if isinstance(array, np.ndarray):
            low, high = byte_bounds(array)
            return self.at(low, high - low)
        address = pointer(array)
        return (
            self.at(address, array.nbytes)
            if address is not None and {one.platform for one in array.devices()} == {"cpu"}
            else None
        )

    @contextmanager
    def writable(self, array: np.ndarray) -> Iterator[Span]:
        """Let a watched array, or a view of one, be written. InputError for any other."""
        span = self.of(array)
        if span is None:
            raise InputError(
                f"an array of shape {array.shape} is to be written that is not watched; watched: "
                f"{', '.join(self._arrays) or 'none'}; give it to put() or guard() first"
            )
        owner = self._arrays[span.resource]
        owner.flags.writeable = True
        array.flags.writeable = True
        try:
            yield span
        finally:
            array.flags.writeable = owner.flags.writeable = False

    def release(self) -> None:
        """Make every array what it was."""
        for name, array in self._arrays.items():
            array.flags.writeable = self._were[name]
        self._arrays.clear()


def pointer(array: np.ndarray | Array) -> int | None:
    """The address of a device array on one device; None of any other. Never blocks."""
    if not isinstance(array, Array) or array.is_deleted() or len(array.devices()) != 1:
        return None
    return array.unsafe_buffer_pointer()
