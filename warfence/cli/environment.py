"""The environment variables that hide a race or move it, each with what it does. `warfence doctor` prints them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable and, in a line, what it does to a race."""

    name: str
    effect: str


VARIABLES = (
    Variable(
        "WARFENCE_FORCE_COARSE_WAR_BARRIER",
        "1: every barrier waits for the whole forward. Safe and slow: it hides a policy that releases too early.",
    ),
    Variable(
        "WARFENCE_ENABLE_PREFILL_WAR_READ_DONE",
        "1: an EXTEND launch may publish a ticket as well. Unset: prefill is always fenced coarse.",
    ),
    Variable(
        "CUDA_LAUNCH_BLOCKING",
        "1: every kernel launch blocks the host, so nothing overlaps: races disappear, and so does the gain.",
    ),
    Variable(
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "1: freed memory goes back to the driver, which synchronises: it hides races on recycled memory.",
    ),
    Variable(
        "JAX_DEBUG_NANS",
        "1: donation is off (a write lands in a new buffer) and every dispatch waits for its result.",
    ),
    Variable(
        "JAX_DISABLE_JIT",
        "1: runs operation by operation: no executables, no cut, no donation.",
    ),
    Variable(
        "JAX_CPU_ENABLE_ASYNC_DISPATCH",
        "Does nothing as a variable (seen on JAX 0.10.2). As jax.config option, false: CPU dispatch blocks.",
    ),
    Variable(
        "XLA_PYTHON_CLIENT_PREALLOCATE",
        "Unset or true: JAX takes most of a GPU's memory at its first use; set false when torch shares the GPU.",
    ),
    Variable(
        "XLA_FLAGS",
        "May change threads, streams and fusion: note it beside every number you report.",
    ),
    Variable(
        "OMP_NUM_THREADS",
        "Threads of one torch operation on CPU; set 1 when lanes should overlap on few cores.",
    ),
)


def survey(environ: Mapping[str, str] | None = None) -> list[dict[str, str | None]]:
    """Name, value (None when unset) and effect of every variable, in the order of `VARIABLES`."""
    values = os.environ if environ is None else environ
    return [{"name": var.name, "value": values.get(var.name), "effect": var.effect} for var in VARIABLES]
