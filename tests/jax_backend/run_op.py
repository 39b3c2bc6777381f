"""One op on its own, and the small things that every test of one needs."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from warfence.core.modes import Region
from warfence.core.program import Stage
from warfence_jax.kernels import run_stage


def run(
    op: str,
    known: Mapping[str, object],
    gives: tuple[str, ...] = (),
    *,
    state: tuple[str, ...] = (),
    attrs=None,
    skip=(),
) -> dict[str, np.ndarray]:
    """Run one op; everything known is declared, but for what is in `skip`. All state is given up, as a forward does."""
    arrays = {n: jnp.asarray(v) for n, v in known.items()}
    takes = tuple(n for n in arrays if n not in state and n not in skip)
    stage = Stage(f"the {op}", Region.REPLAY, op, takes=takes, gives=gives, state=state, attrs=attrs or {})
    kept = {n: jnp.array(a, copy=True) for n, a in arrays.items() if n in state}

    def call(kept: dict[str, jax.Array], others: dict[str, jax.Array]) -> dict[str, jax.Array]:
        return run_stage(stage, {**kept, **others})

    others = {n: a for n, a in arrays.items() if n not in state}
    given = jax.jit(call, donate_argnums=0)(kept, others)
    assert all(array.is_deleted() for array in kept.values()), "a state array was not taken over"
    for name, array in given.items():
        assert array.dtype in (jnp.int32, jnp.float32), f"{name} is of {array.dtype}"
    return {n: np.asarray(v) for n, v in given.items()}


def i32(values: object) -> np.ndarray:
    return np.asarray(values, np.int32)


def f32(values: object) -> np.ndarray:
    return np.asarray(values, np.float32)


def normal(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) * np.float32(scale)


def close(given: np.ndarray, expected: object) -> None:
    np.testing.assert_allclose(given, np.asarray(expected), rtol=2e-5, atol=2e-5)
