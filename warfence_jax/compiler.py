"""Ahead-of-time compilation with donation that is checked, not hoped for.

A donation can be refused silently, so the text of each executable is read: every donated argument must be aliased
with an output there. What is not aliased is still safe, because the runtime copies; it is reported as "safe by copy".
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array, Device, ShapeDtypeStruct
from jax.sharding import SingleDeviceSharding
from jax.stages import Compiled
from jax.typing import DTypeLike

_ALIAS = re.compile(r"\{[\d, ]*\}: \((\d+), \{\}, (?:may|must)-alias\)")

# Executables of this process by the text that they were compiled from (without its name) and their device: forwards of
# several attention kinds and fences share most of theirs, and an executable holds no state. What calls back is not
# shared: the text names a callback by its index in its own program, so the gates of two forwards read alike.
_MADE: OrderedDict[tuple[str, str], Compiled] = OrderedDict()
MOST_KEPT = 512
CALLBACK = "callback"  # in the name of every custom call of JAX that calls back


class Compiler:
    """Counts what it compiles; remembers the donations that the compiler did not turn into aliases."""

    def __init__(self) -> None:
        self.compilations = 0
        self.copied: list[str] = []

    def compile(
        self, name: str, run: Callable[..., object], arguments: Sequence[ShapeDtypeStruct], donate: Sequence[int] = ()
    ) -> tuple[Compiled, tuple[ShapeDtypeStruct, ...]]:
        """Compile `run(*arguments)`, which returns arrays. Unused arguments are kept: the runtime waits for them.

        float32 products are exact to float32 on every device. Returns the executable and the shapes of its results.
        """

        def named(*given: Array) -> object:
            return run(*given)

        named.__name__ = re.sub(r"\W+", "_", name)  # for profiles and dumps
        with jax.default_matmul_precision("highest"):
            lowered = jax.jit(named, donate_argnums=tuple(donate), keep_unused=True).lower(*arguments)
        text = lowered.as_text().partition("\n")[2]
        key = (text, str(arguments[0].sharding if arguments else ""))
        compiled = _MADE.get(key)
        if compiled is None:
            compiled = lowered.compile()
            self.compilations += 1
            if CALLBACK not in text:
                _MADE[key] = compiled
            if len(_MADE) > MOST_KEPT:
                _MADE.popitem(last=False)
        missing = set(donate) - aliased_arguments(compiled)
        self.copied += [f"{name}: argument {i}" for i in sorted(missing)]
        return compiled, tuple(ShapeDtypeStruct(o.shape, o.dtype) for o in jax.tree.leaves(lowered.out_info))


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
