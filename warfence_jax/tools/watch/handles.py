"""Handles of arrays: where their memory lies, which call made it, which calls read it, and who donated it."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import numpy as np
from jax import Array

from warfence.races.check.events import Event
from warfence_jax.tools.watch.memory import HostMemory, Span


@dataclass
class Handle:
    """One array. made: (lane, event) of the call that gave it; readers: by lane, the event of the last call that took it.

    donor: the call that donated it, as a phrase; empty: none.
    """

    span: Span
    made: tuple[str, str] | None = None
    readers: dict[str, str] = field(default_factory=dict)
    donor: str = ""

    def waits(self, lane: str, giving: bool, place: str) -> list[Event]:
        """What orders a call of this lane behind others: their outputs, and what the runtime holds a donation for."""
        behind = dict([self.made] if self.made is not None else [])
        if giving:
            behind |= self.readers
        return [Event("wait", lane, event=event, where=place) for other, event in behind.items() if other != lane]


class Handles:
    """All arrays that are alive and went through the watch, by identity."""

    def __init__(self, memory: HostMemory) -> None:
        self._memory = memory
        self._known: dict[int, Handle] = {}
        self._count = 0

    def of(self, array: np.ndarray | Array) -> Handle:
        """The handle of an array that is taken. In watched memory it lies there, else in memory of its own."""
        handle = self._known.get(id(array))
        return handle or self._keep(array, Handle(self._memory.of(array) or self._fresh(array)))

    def given(self, array: Array, made: tuple[str, str], span: Span | None) -> Handle:
        """The array is the output of a call. span: the donated memory that it lies in."""
        return self._keep(array, Handle(span or self._fresh(array), made))

    def output(self, array: object) -> Handle | None:
        """The handle of an array that a call gave; None where none did."""
        return self._known.get(id(array))

    def _keep(self, array: np.ndarray | Array, handle: Handle) -> Handle:
        """For as long as the array lives."""
        key = id(array)
        self._known[key] = handle
        weakref.finalize(array, self._known.pop, key, None)
        return handle

    def _fresh(self, array: np.ndarray | Array) -> Span:
        self._count += 1
        return Span(f"array {self._count}", 0, max(array.nbytes, 1))
