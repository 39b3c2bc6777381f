"""The executables of replayed accesses. One is made for each form, whichever scenario it is for.

In front of each access stands a callback, which is its gate; behind it another one, which takes what was read to the host
and writes host memory in place. What is read passes through a sum with the gate's result, so that it is read behind it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, Device, ShapeDtypeStruct
from jax.experimental import io_callback
from jax.stages import Compiled

from warfence_jax.compiler import QUICK, on

SIZES = (16, 256, 4096)  # cells of an operand: smaller memories are padded, so that they share executables
WORDS = 2  # in front of the ranges of a row of words: the run, and which of its accesses
Access = tuple[tuple[int, ...], tuple[int, ...]]  # operands that it reads, and those that it writes


class Form(NamedTuple):
    """sizes: cells of each operand. Operands that any access writes are donated and come back, in their order."""

    accesses: tuple[Access, ...]
    sizes: tuple[int, ...]

    @property
    def donated(self) -> tuple[int, ...]:
        return tuple(sorted({one for _, writes in self.accesses for one in writes}))

    @property
    def words(self) -> int:
        return WORDS + 3 * max(len(writes) for _, writes in self.accesses)


class Run(Protocol):
    """What one call of an executable calls back."""

    def enter(self, access: int) -> None:
        """In front of an access: returns once its gate is open."""
        ...

    def leave(self, access: int, read: list[np.ndarray]) -> None:
        """Behind an access: what its operands held."""
        ...


class Runs:
    """The runs that go on now, by number: an executable that many share takes the number as an operand."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._runs: dict[int, Run] = {}
        self._lock = threading.Lock()

    def add(self, run: Run) -> int:
        with self._lock:
            number = next(self._numbers)
            self._runs[number] = run
        return number

    def remove(self, number: int) -> None:
        with self._lock:
            del self._runs[number]

    def enter(self, run: Array, access: Array, order: Array) -> np.ndarray:
        self._runs[int(run)].enter(int(access))
        return np.zeros((), np.int32)

    def leave(self, run: Array, access: Array, order: Array, *read: Array) -> np.ndarray:
        self._runs[int(run)].leave(int(access), [np.array(one) for one in read])
        return np.zeros((), np.int32)


RUNS = Runs()


def padded(size: int) -> int:
    """Cells of the operand for a memory of that size."""
    return next((one for one in SIZES if one >= size), size)


@cache
def executable(form: Form, device: Device) -> Compiled:
    """(words of every access, operands) -> donated operands. A row of words: run, access, then begin, end and value of
    each write."""
    arguments = [on(device, (len(form.accesses), form.words), np.int32)]
    arguments += [on(device, (size,), np.int32) for size in form.sizes]
    donated = tuple(1 + one for one in form.donated)
    return jax.jit(_function(form), donate_argnums=donated, keep_unused=True).lower(*arguments).compile(QUICK)


def _function(form: Form) -> Callable[..., tuple[Array, ...]]:
    scalar = ShapeDtypeStruct((), np.int32)

    def replayed(words: Array, *given: Array) -> tuple[Array, ...]:
        operands, order = list(given), jnp.int32(0)
        for row, (reads, writes) in zip(words, form.accesses, strict=True):
            order = io_callback(RUNS.enter, scalar, row[0], row[1], order)
            read = [operands[one] + order for one in reads]
            for number, one in enumerate(writes):
                begin, end, value = (row[WORDS + 3 * number + i] for i in range(3))
                cell = jnp.arange(form.sizes[one], dtype=np.int32)
                operands[one] = jnp.where((begin <= cell) & (cell < end), value + order, operands[one])
            order = io_callback(
                RUNS.leave, scalar, row[0], row[1], order, *read, *(operands[one][:1] for one in writes)
            )
        return (order, *(operands[one] + 0 * order for one in form.donated))

    return replayed
