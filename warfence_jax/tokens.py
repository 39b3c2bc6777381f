"""Tokens: small outputs of executables that stand for "this far the lane has got". A token is a future of an array."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import reduce

import jax
from jax import Array, Device
from jax.stages import Compiled

from warfence.core.fence import AtLeast


def is_ready(array: Array) -> bool:
    """Whether what makes the array has run. Never blocks. JAX's arrays all have it; their public type does not say so."""
    ready: bool = array.is_ready()  # type: ignore[attr-defined]
    return ready


class Promise:
    """The token of one dispatch. After a failure it is kept without an array, so that nobody who waits for it hangs.

    chain: the lane and the device whose order it is part of. number: its place in that order.
    """

    __slots__ = ("_dispatched", "array", "chain", "number")

    def __init__(self, chain: tuple[str, Device], number: int) -> None:
        self.chain, self.number = chain, number
        self._dispatched = threading.Event()
        self.array: Array | None = None

    def keep(self) -> None:
        """The dispatch is over; whoever waits for it goes on."""
        self._dispatched.set()

    def dispatched(self) -> bool:
        return self._dispatched.is_set()

    def await_dispatch(self) -> None:
        self._dispatched.wait()

    def ready(self) -> bool:
        """Dispatched, and executed. Never blocks."""
        return self._dispatched.is_set() and (self.array is None or is_ready(self.array))

    def block(self) -> None:
        """Block this thread until the executable has run."""
        self._dispatched.wait()
        if self.array is not None:
            self.array.block_until_ready()


class WordWait:
    """A wait for a value of a word, in a lane's list of promises. Nothing was dispatched for it, and no array stands for it, so
    the lane's thread stands there itself. It may come before its launch.
    """

    __slots__ = ("array", "chain", "number", "source")

    def __init__(self, source: AtLeast, device: Device) -> None:
        self.source = source
        self.chain, self.number = ("word", device), source.value
        self.array = None

    def dispatched(self) -> bool:
        return True

    def await_dispatch(self) -> None:
        """Nothing to wait for."""

    def ready(self) -> bool:
        return self.source.done()

    def block(self) -> None:
        """Block this thread until the word has the value. FenceError when the launch never comes."""
        self.source.synchronize()


class Record:
    """What tickets are recorded on (`TicketSource`): the tokens of a point in a lane. Recording again overwrites."""

    def __init__(self) -> None:
        self._launch: int | None = None
        self.promises: tuple[Promise | WordWait, ...] = ()

    def arm(self, launch: int, promises: tuple[Promise | WordWait, ...]) -> None:
        self._launch, self.promises = launch, promises

    def recorded_for(self) -> int | None:
        return self._launch

    def done(self) -> bool:
        return all(p.ready() for p in self.promises)

    def synchronize(self) -> None:
        for promise in self.promises:
            promise.block()


class Joints:
    """The small things that every lane needs on each device: a zero token, and an executable that joins two tokens."""

    def __init__(self, tables: Device, zeros: Mapping[Device, Array], joins: Mapping[Device, Compiled]) -> None:
        self.tables = tables
        self.devices = tuple(zeros)
        self._zeros, self._joins = zeros, joins

    def operand(self, device: Device, promises: Sequence[Promise | WordWait]) -> Array:
        """One token on the device that is there when all the promises are. Dispatched promises only."""
        arrays = [p.array for p in promises if p.array is not None]
        if len(self.devices) > 1:
            arrays = [self._move(a, device) for a in arrays if a.device == device or not is_ready(a)]
        return reduce(self._joins[device], arrays) if arrays else self._zeros[device]

    @staticmethod
    def _move(token: Array, device: Device) -> Array:
        return token if token.device == device else jax.device_put(token, device)
