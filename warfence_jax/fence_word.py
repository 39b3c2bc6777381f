"""The word of one captured forward: four bytes that its executable takes by donation and gives back incremented.

Donated, it stays where it is, so whoever knows its address sees each launch's reads end: a thread that looks, or a stream that
waits for the value. That it stays is checked at every launch.
"""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass
from typing import Any, Protocol

import jax.numpy as jnp
from jax import Array, Device

from warfence.core.errors import FenceError
from warfence.core.gates import WATCHDOG_S
from warfence.host.lanes import await_word


class Memory(Protocol):
    """How the word's memory is looked at (`warfence.core.fence.Word`)."""

    def count(self) -> int: ...
    def await_count(self, value: int) -> None: ...


class HostMemory:
    """Memory that this process may read: an address, and nothing else."""

    def __init__(self, address: int, owner: str, watchdog_s: float = WATCHDOG_S) -> None:
        self._word = ctypes.c_uint32.from_address(address)
        self._owner, self._watchdog_s = owner, watchdog_s

    def count(self) -> int:
        return self._word.value

    def await_count(self, value: int) -> None:
        await_word(self.count, self._owner, value, self._watchdog_s)


@dataclass(frozen=True, slots=True)
class Inside:
    """The marker inside one executable: a word and how its memory is looked at, or an event that XLA's graph records."""

    word: DonatedWord | None = None
    memory: Memory | None = None
    event: Any = None


NOTHING_INSIDE = Inside()


class DonatedWord:
    """The word as arrays: `take` gives the one to donate, `give` takes back the one that came out. `zero` holds 0."""

    def __init__(self, owner: str, device: Device, count: int = 0) -> None:
        self.owner = owner
        self._array: Array | None = jnp.full((1,), count, jnp.uint32, device=device) + jnp.uint32(0)
        self.zero = jnp.zeros((1,), jnp.uint32, device=device)
        self._array.block_until_ready()
        self.address = self._array.unsafe_buffer_pointer()
        self._taken = threading.Lock()

    def take(self) -> Array:
        """FenceError when another thread has it, or when its memory is gone."""
        if not self._taken.acquire(blocking=False):
            raise FenceError(
                f"'{self.owner}' is launched from two threads at a time: launch it from its forward lane alone"
            )
        if self._array is None or self._array.is_deleted():
            raise FenceError(
                f"the word of '{self.owner}' was deleted, or its last launch failed: nobody could say when reads end; compile "
                f"the forward again"
            )
        array, self._array = self._array, None
        return array

    def give(self, array: Array) -> None:
        """FenceError when the word is in other memory now: who waits for the old one would wait for ever."""
        self._array = array
        if array.unsafe_buffer_pointer() != self.address:
            raise FenceError(
                f"the word of '{self.owner}' moved from {self.address:#x} to {array.unsafe_buffer_pointer():#x}: its donation "
                f"was refused, so nobody sees it counted; use the marker 'cut'"
            )

    def free(self) -> None:
        """The launch is dispatched, or failed."""
        self._taken.release()
