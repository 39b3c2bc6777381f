"""The ops of programs as pure JAX functions. One file a room: the model, the check of proposals, and each drafter."""

from __future__ import annotations

from collections.abc import Mapping

from jax import Array

from warfence.core.program import Stage
from warfence.host.stage_calls import StageEnv, check_given, kernel_of
from warfence_jax.kernels import dflash, eagle, model, ngram, verify
from warfence_jax.kernels.shared import Attrs, Env, Kernel

KERNELS: dict[str, Kernel] = {
    **model.KERNELS,
    **verify.KERNELS,
    **dflash.KERNELS,
    **eagle.KERNELS,
    **ngram.KERNELS,
}


def run_stage(stage: Stage, known: Mapping[str, Array]) -> dict[str, Array]:
    """Trace one stage over the arrays that are known; returns its gives and all its state."""
    names = (*stage.reads, *stage.takes, *stage.state, *stage.params)
    given = kernel_of(stage, KERNELS)(StageEnv(stage.name, {n: known[n] for n in names}), stage.attrs)
    check_given(stage, given, (*stage.gives, *stage.state))
    return given


__all__ = ["KERNELS", "Attrs", "Env", "run_stage"]
