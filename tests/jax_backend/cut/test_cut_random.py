"""cut() on random functions: the boundary is the stage of the last read, and the parts give what numpy gives."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from jax import Array

from tests.random_functions import WIDTH, NumpyOps, RandomFunction, random_functions
from warfence.parity.boundary import find
from warfence_jax import cut
from warfence_jax.tools.cutting.arguments import traced_with
from warfence_jax.tools.cutting.operations import operations

EXAMPLES = int(os.environ.get("WARFENCE_EXAMPLES", "0"))  # 0: a few


class JaxOps:
    """Implements `random_functions.Ops`: a loop is a `scan`, a branch a `cond`, a nested call is a `jit`."""

    stage = staticmethod(jax.named_scope)

    def gather(self, table: Array, rows: Array) -> Array:
        return table[rows % len(table), np.arange(WIDTH)]

    def row(self, table: Array, row: int) -> Array:
        return table[row]

    def add(self, a: Array, b: Array) -> Array:
        return a + b

    def scale(self, a: Array) -> Array:
        return jnp.floor((a % 64).astype(jnp.float32) * 1.5).astype(jnp.int32)

    def update(self, a: Array, b: Array) -> Array:
        return a.at[: WIDTH // 2].set(b[: WIDTH // 2])

    def branch(self, a: Array, table: Array, row: int) -> Array:
        even = a % 2 == 0
        return jax.lax.cond(even.any(), lambda t, a: jnp.where(even, t[row], a), lambda t, a: a, table, a)

    def loop(self, a: Array, table: Array, gather: Callable[[Any, Any], Any]) -> Array:
        return jax.lax.scan(lambda a, _: (a + gather(table, a), None), a, length=2)[0]

    def nested(self, call: Callable[[Any, Any], Any], a: Array, table: Array) -> Array:
        return jax.jit(call)(a, table)


def run(function: RandomFunction) -> Callable[..., Any]:
    return lambda left, right, x: function.run(JaxOps(), left, right, x)


@pytest.mark.slow
@settings(max_examples=EXAMPLES or 40, deadline=None)
@given(random_functions())
def test_the_boundary_is_the_stage_of_the_last_read(function: RandomFunction) -> None:
    traced = traced_with(run(function), function.arguments(), (0, 1), ())
    assert find(operations(traced, traced.equations)).stage == function.boundary


@pytest.mark.slow
@settings(max_examples=EXAMPLES or 8, deadline=None)
@given(random_functions())
def test_the_parts_give_what_numpy_gives(function: RandomFunction) -> None:
    arguments = function.arguments()
    for options in ({}, {"order": "hoist", "behind": "each"}):
        made = cut(run(function), arguments, shared_argnums=(0, 1), **options)
        for ours, right in zip(made(*arguments), function.run(NumpyOps(), *arguments), strict=True):
            np.testing.assert_array_equal(ours, right)
