"""Compares what a cut function returns with what the uncut one does.

XLA fuses within an executable, so a cut may round elsewhere than the uncut function does. Nothing else changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.stages import Compiled

from warfence_jax.cutting.trace import Traced

if TYPE_CHECKING:
    from warfence_jax.cutting.cut import Cut


@dataclass(frozen=True, slots=True)
class Difference:
    """One result. absolute: the largest difference. ulps: the largest, in steps of its type; 0 for integers that agree."""

    name: str
    bitwise: bool
    absolute: float
    ulps: int

    def __str__(self) -> str:
        return f"{self.name}: " + (
            "equal bit for bit" if self.bitwise else f"off by {self.absolute:g}, {self.ulps} ulps"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """All results of one call."""

    results: tuple[Difference, ...]

    @property
    def bitwise(self) -> bool:
        """All results are equal bit for bit."""
        return all(d.bitwise for d in self.results)

    @property
    def ulps(self) -> int:
        """The largest difference of all."""
        return max((d.ulps for d in self.results), default=0)


def compare(uncut: Compiled, cut: Cut, args: Sequence[Any], traced: Traced) -> Comparison:
    """Run both on copies of the arguments, and compare each result."""
    own = jax.tree.leaves(tuple(args))[: traced.own_tree.num_leaves]
    expected = uncut(*jax.tree.map(jnp.copy, own))
    found = jax.tree.leaves(cut(*jax.tree.map(jnp.copy, tuple(args))))
    return Comparison(tuple(map(_difference, traced.result_names, expected, found)))


def _difference(name: str, expected: Array, found: Array) -> Difference:
    a, b = np.atleast_1d(_numbers(expected)), np.atleast_1d(_numbers(found))
    if a.tobytes() == b.tobytes() and a.dtype == b.dtype:
        return Difference(name, True, 0.0, 0)
    wide = np.float64 if a.dtype.kind not in "iub" else np.int64
    apart = np.abs(a.astype(wide) - b.astype(wide))
    steps = np.abs(_steps(a) - _steps(b))
    return Difference(name, False, float(np.nanmax(apart, initial=0)), int(steps.max()))


def _numbers(array: Array) -> np.ndarray:
    """A result as real numbers: keys by their words, complex numbers by their parts."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    host = np.asarray(array)
    return host.view(host.real.dtype) if host.dtype.kind == "c" else host


def _steps(array: np.ndarray) -> np.ndarray:
    """The place of each number among all of its type, so that neighbours are one apart. -0.0 and 0.0 share theirs."""
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    bits = array.view(f"i{array.dtype.itemsize}").astype(np.int64)
    return np.where(bits < 0, np.int64(-(2 ** (8 * array.dtype.itemsize - 1))) - bits, bits)
