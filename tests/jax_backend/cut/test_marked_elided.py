"""marked() where XLA elides the operation that the trace takes for the read, and its check of itself."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from warfence.core.errors import InputError
from warfence_jax import marked
from warfence_jax.tools.cutting.marked import aligned

ROWS = jnp.array([1, 2])
ELIDED: dict[str, Callable[..., Any]] = {
    "a barrier": lambda t, r: jax.lax.optimization_barrier(t)[r],
    "two barriers": lambda t, r: jax.lax.optimization_barrier(jax.lax.optimization_barrier(t))[r] + 1,
    "a reshape": lambda t, r: t.reshape(8, 8)[r],
    "a copy": lambda t, r: jnp.copy(t)[r] * 2,
    "a barrier and a read before it": lambda t, r: t[r] + jax.lax.optimization_barrier(t)[r + 1],
}


@pytest.mark.parametrize("fn", ELIDED.values(), ids=ELIDED)
def test_the_marker_stands_behind_the_real_read(fn: Callable[..., Any]) -> None:
    host = aligned(np.arange(64, dtype=np.int32))
    table = jax.device_put(host)
    right = np.array(jax.jit(fn)(jnp.arange(64, dtype=jnp.int32), ROWS))
    made = marked(fn, (table, ROWS), lambda: host.fill(-7), shared_argnums=0)
    got = np.array(made(table, ROWS))
    jax.effects_barrier()
    assert host[0] == -7, "the host was not told, so nothing was overwritten"
    np.testing.assert_array_equal(got, right)


def test_a_marker_that_is_too_early_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative arm: the trace alone, as it was, and the check finds it out."""
    module = import_module("warfence_jax.tools.cutting.marked")  # the package has a function of that name
    monkeypatch.setattr(module, "of_one_executable", lambda traced, operations: operations)
    monkeypatch.setattr(
        module, "_check", lambda compiled, traced: None
    )  # that of the compiled module finds it out, too
    with pytest.raises(InputError, match=r"overwriting the shared arrays behind operation 0 .* changes a result"):
        marked(ELIDED["a barrier"], (jnp.arange(64, dtype=jnp.int32), ROWS), lambda: None, shared_argnums=0)


def test_the_check_leaves_the_arguments_alone_and_tells_nobody() -> None:
    table, told = jnp.arange(64, dtype=jnp.int32), []
    made = marked(ELIDED["a barrier"], (table, ROWS), lambda: told.append(1), shared_argnums=0)
    assert not told
    np.testing.assert_array_equal(table, np.arange(64))
    jax.block_until_ready(made(table, ROWS))
    jax.effects_barrier()
    assert told == [1]
