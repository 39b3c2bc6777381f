"""The word inside an executable: incremented behind the last shared read, and before what comes after it.

Order in an executable is data, and nothing else: `optimization_barrier` orders nothing, and independent operations run in any
order. So the word depends on all that was read, and what was read reaches the rest only by way of the word. Both through
`zero`, an operand that holds 0: a constant would be folded away. And XLA computes twice what it would rather not keep: then a
table is read once more behind the word, or the word is counted for others first and in its memory last. On a GPU the barrier
keeps it from that. On the CPU it is gone before operations are fused, and a loop of one turn does: what it takes is in memory
before it begins, and nobody computes a loop twice. Whether all that was heeded, the text of the compiled module tells
(`compiled`), and
what does not heed it is refused.

Alternatives: a callback there (`marked`: a trip to the host), an event recorded by `buffer_callback` (0.2 ms of host time a
call of 24 layers on an H200), a cut (a donated table needs it: PjRt holds it until the executable is over).
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import UInt32

Word = UInt32[Array, "1"]


def mark(
    word: Word, zero: Word, read: Sequence[Array], touched: Sequence[Array], loops: bool
) -> tuple[Word, list[Array]]:
    """The word, one higher once all of `read` is there, and the values of `read` that are there only behind that.

    read: whole values; of one element alone XLA would compute that first. touched: int32 scalars, each of an array that is
    written in one piece. zero: an operand that holds 0. loops: a loop costs nothing there (on a GPU it asks the host).
    """
    return by_loop(word, zero, read, touched) if loops else by_data(word, zero, read, touched)


def by_loop(word: Word, zero: Word, read: Sequence[Array], touched: Sequence[Array]) -> tuple[Word, list[Array]]:
    """A loop of one turn, as far as XLA can tell of any number, counts the word and takes the values through."""
    seen = sum((_bits(t) for t in touched), start=jnp.uint32(0))

    def turn(_: Array, carried: list[Array]) -> list[Array]:
        return [carried[0] + jnp.uint32(1) + zero * seen, *(follow(v, zero[0]) for v in carried[1:])]

    word, *values = jax.lax.fori_loop(jnp.uint32(0), jnp.uint32(1) + zero[0], turn, [word, *read])
    return word, values


def by_data(word: Word, zero: Word, read: Sequence[Array], touched: Sequence[Array]) -> tuple[Word, list[Array]]:
    """The word behind a sum of the values, and the values behind the word."""
    kept = jax.lax.optimization_barrier(list(read))
    seen = sum((jnp.sum(_bits(v)) for v in kept), start=sum((_bits(t) for t in touched), start=jnp.uint32(0)))
    word = jax.lax.optimization_barrier(word + jnp.uint32(1) + zero * seen)
    return word, [follow(v, zero[0] * word[0]) for v in kept]


def follow(value: Array, nothing: UInt32[Array, ""]) -> Array:
    """The value, bit for bit, there only once `nothing` is, which is 0."""
    if value.dtype == jnp.bool_:
        return value ^ (nothing != 0)
    bits = jax.lax.bitcast_convert_type(value, jnp.uint32)
    return jax.lax.bitcast_convert_type(bits + nothing, value.dtype)


def _bits(value: Array) -> Array:
    if value.dtype == jnp.bool_:
        return value.astype(jnp.uint32)
    return jax.lax.bitcast_convert_type(value, jnp.uint32)
