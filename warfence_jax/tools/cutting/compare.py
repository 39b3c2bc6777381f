"""Compares what a cut function returns with what the uncut one does.

XLA fuses within one executable. Where a cut parts what it would fuse, a product and a sum, say, are rounded apart instead of
once: then the results differ by a few roundings of intermediate values, else they are equal bit for bit. What is computed of
integers alone always is. Hoisted, a head is mostly gathers and their indices, and there is nothing to part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, Device
from jax.stages import Compiled

from warfence_jax.tools.cutting.trace import Traced

if TYPE_CHECKING:
    from warfence_jax.tools.cutting.cut import Cut


INTEGERS = "iub"  # kinds of numpy


@dataclass(frozen=True, slots=True)
class Difference:
    """One result. absolute: the largest difference. relative: that, as a share of the largest expected value. ulps: the
    largest in steps of the type, which is large where a value near zero is the difference of two others. NaN is equal to NaN.
    """

    name: str
    bitwise: bool
    absolute: float = 0.0
    relative: float = 0.0
    ulps: int = 0

    def __str__(self) -> str:
        if self.bitwise:
            return f"{self.name}: equal bit for bit"
        return f"{self.name}: off by {self.absolute:g}, {self.relative:g} of its largest value, {self.ulps} ulps"


@dataclass(frozen=True, slots=True)
class Comparison:
    """All results of one call."""

    results: tuple[Difference, ...]

    @property
    def bitwise(self) -> bool:
        """All results are equal bit for bit."""
        return all(d.bitwise for d in self.results)

    @property
    def relative(self) -> float:
        """The largest relative difference of all."""
        return max((d.relative for d in self.results), default=0.0)


def compare(uncut: Compiled, cut: Cut, args: Sequence[Any], traced: Traced, device: Device) -> Comparison:
    """Run both on copies of the arguments, and compare each result."""
    own = jax.tree.leaves(tuple(args))[: traced.own_tree.num_leaves]
    expected = uncut(*(jax.device_put(jnp.copy(a), device) for a in own))
    found = jax.tree.leaves(cut(*jax.tree.map(jnp.copy, tuple(args))))
    return Comparison(tuple(map(_difference, traced.result_names, expected, found)))


def _difference(name: str, expected: Array, found: Array) -> Difference:
    a, b = np.atleast_1d(_numbers(expected)), np.atleast_1d(_numbers(found))
    if a.tobytes() == b.tobytes() and a.dtype == b.dtype:
        return Difference(name, True)
    wide = np.int64 if a.dtype.kind in INTEGERS else np.float64
    x, y = a.astype(wide), b.astype(wide)
    same = (x == y) | ((x != x) & (y != y))
    with np.errstate(invalid="ignore"):  # infinity less infinity, which is the same
        apart = np.where(same, 0, np.abs(x - y)).astype(np.float64)
    apart[np.isnan(apart)] = np.inf  # NaN on one side only
    steps = np.where(same, 0, np.abs(_steps(a) - _steps(b)))
    largest = np.abs(x[np.isfinite(x)]).max(initial=0)
    absolute = float(apart.max(initial=0))
    return Difference(
        name, False, absolute, absolute / float(largest) if largest else absolute, int(steps.max(initial=0))
    )


def _numbers(array: Array) -> np.ndarray:
    """A result as real numbers: keys by their words, complex numbers by their parts."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    host = np.asarray(array)
    return host.view(host.real.dtype) if host.dtype.kind == "c" else host


def _steps(array: np.ndarray) -> np.ndarray:
    """The place of each number among all of its type, so that neighbours are one apart. -0.0 and 0.0 share theirs."""
    if array.dtype.kind in INTEGERS:
        return array.astype(np.int64)
    bits = array.view(f"i{array.dtype.itemsize}").astype(np.int64)
    return np.where(bits < 0, np.int64(-(2 ** (8 * array.dtype.itemsize - 1))) - bits, bits)
