"""`marked` reads its compiled module, and accepts a marker that stands behind the real read."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from warfence_jax import marked


def test_a_real_read_is_marked_behind() -> None:
    table, rows, told = jax.device_put(np.arange(64, dtype=np.int32)), jnp.array([1, 2]), list[int]()
    made = marked(lambda t, r: jnp.tanh(t[r] * 1.0), (table, rows), lambda: told.append(1), shared_argnums=0)
    assert np.allclose(made(table, rows), np.tanh([1.0, 2.0]))
    jax.effects_barrier()
    assert told == [1]
