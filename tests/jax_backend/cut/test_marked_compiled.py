"""`marked` reads the compiled module: a marker before the real read is refused, not silently wrong."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from warfence.core.errors import InputError
from warfence_jax import marked


def test_an_operation_that_the_compiler_leaves_out_is_no_read() -> None:
    table, rows = jax.device_put(np.arange(64, dtype=np.int32)), jnp.array([1, 2])
    with pytest.raises(
        InputError, match=r"uses table '\w+' behind the marker, .* Line \d+ is `%.*An operation that is left out"
    ):
        marked(lambda t, r: jax.lax.optimization_barrier(t)[r], (table, rows), lambda: None, shared_argnums=0)


def test_a_real_read_is_marked_behind() -> None:
    table, rows, told = jax.device_put(np.arange(64, dtype=np.int32)), jnp.array([1, 2]), list[int]()
    made = marked(lambda t, r: jnp.tanh(t[r] * 1.0), (table, rows), lambda: told.append(1), shared_argnums=0)
    assert np.allclose(made(table, rows), np.tanh([1.0, 2.0]))
    jax.effects_barrier()
    assert told == [1]
