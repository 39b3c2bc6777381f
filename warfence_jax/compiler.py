"""Ahead-of-time compilation with donation that is checked, not hoped for.

A donation can be refused silently, so the text of each executable is read: every donated argument must be aliased
with an output there. What is not aliased is still safe, because the runtime copies; it is reported as "safe by copy".
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, Device, ShapeDtypeStruct
from jax.sharding import SingleDeviceSharding
from jax.stages import Compiled, Lowered
from jax.typing import DTypeLike

_ALIAS = re.compile(r"\{[\d, ]*\}: \((\d+), \{\}, (?:may|must)-alias\)")

# Executables of this process by the text that they were compiled from (without its name) and their device: forwards of
# several attention kinds and fences share most of theirs, and an executable holds no state. What calls back is not
# shared: the text names a callback by its index in its own program, so the gates of two forwards read alike.
_MADE: OrderedDict[tuple[str, str, bool], Making] = OrderedDict()
MOST_KEPT = 512
QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0}
QUICK_ON_GPU: dict[str, Any] = {"xla_gpu_autotune_level": 0}
_POOL = ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="warfence-compile")
Verify = Callable[[Compiled], None]
CALLBACK = "callback"  # in the name of every custom call of JAX that calls back


class Making:
    """An executable that is being compiled on another thread: XLA holds no Python lock meanwhile, so several go on at once."""

    __slots__ = ("_compiled", "_future")

    def __init__(self, lowered: Lowered, options: dict[str, Any] | None, verify: Verify) -> None:
        def make() -> Compiled:
            compiled = lowered.compile(options)
            verify(compiled)
            return compiled

        self._future: Future[Compiled] = _POOL.submit(make)
        self._compiled: Compiled | None = None

    def get(self) -> Compiled:
        """The executable. Blocks until it is there; raises what the compiler raised, or who verified it."""
        if self._compiled is None:
            self._compiled = self._future.result()
        return self._compiled


class Compiler:
    """Counts what it compiles; remembers the donations that the compiler did not turn into aliases."""

    def __init__(self) -> None:
        self.compilations = 0
        self._donated: list[tuple[str, Making, frozenset[int]]] = []

    def copied(self) -> list[str]:
        """The donated arguments that the compiler did not alias with an output. Blocks until all is compiled."""
        return [
            f"{name}: argument {i}"
            for name, making, donated in self._donated
            for i in sorted(donated - aliased_arguments(making.get()))
        ]

    def compile(
        self,
        name: str,
        run: Callable[..., object],
        arguments: Sequence[ShapeDtypeStruct],
        donate: Sequence[int] = (),
        quick: bool = False,
        scope: str = "",
        verify: Verify = lambda compiled: None,
    ) -> tuple[Making, tuple[ShapeDtypeStruct, ...]]:
        """Compile `run(*arguments)`, which returns arrays. Unused arguments are kept: the runtime waits for them.

        float32 products are exact to float32 on every device. Returns the executable, which may be in the making, and the
        shapes of its results. What fails while `run` is traced is raised here. quick: spend no time on making it
        fast. scope: executables of different scopes are not shared, so that the names in their texts are their own.
        verify: looks at the executable once it is there; what it raises, whoever asks for the executable is told.
        """

        def named(*given: Array) -> object:
            return run(*given)

        named.__name__ = re.sub(r"\W+", "_", name)  # for profiles and dumps
        with jax.default_matmul_precision("highest"):
            lowered = jax.jit(named, donate_argnums=tuple(donate), keep_unused=True).lower(*arguments)
        text = lowered.as_text().partition("\n")[2]
        key = (text, str(arguments[0].sharding if arguments else "") + scope, quick)
        on_gpu = bool(arguments) and all(d.platform != "cpu" for d in arguments[0].sharding.device_set)
        making = _MADE.get(key)
        if making is None:
            making = Making(lowered, (QUICK_ON_GPU if on_gpu else QUICK) if quick else None, verify)
            self.compilations += 1
            if CALLBACK not in text:
                _MADE[key] = making
            if len(_MADE) > MOST_KEPT:
                _MADE.popitem(last=False)
        self._donated.append((name, making, frozenset(donate)))
        return making, tuple(ShapeDtypeStruct(o.shape, o.dtype) for o in jax.tree.leaves(lowered.out_info))


def aliased_arguments(compiled: Compiled) -> set[int]:
    """The arguments whose memory an output of the executable takes over, read from its text."""
    header = (compiled.as_text() or "").partition("\n")[0]
    return {int(argument) for argument in _ALIAS.findall(header)}


def on(device: Device, shape: Sequence[int], dtype: DTypeLike) -> ShapeDtypeStruct:
    """The description of an argument that lies on one device."""
    return ShapeDtypeStruct(tuple(shape), jnp.dtype(dtype), sharding=SingleDeviceSharding(device))


def touch(array: Array) -> Array:
    """An int32 scalar that is there only when the array is: one element of it.

    A token is made of these. Built of its operands alone it would be early wherever a runtime signals each output of an
    executable by itself (newer XLA GPU clients: openxla/xla #46914).
    """
    first = array[(0,) * array.ndim]
    return jax.lax.bitcast_convert_type(first, jnp.int32) if first.dtype == jnp.float32 else first.astype(jnp.int32)


def token_of(order: Array, wait: Array, results: Sequence[Array]) -> Array:
    """The token that an executable gives: there after its two operands and its results."""
    return sum((touch(r) for r in results), start=order + wait)
