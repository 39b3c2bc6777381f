"""The environment variables that hide a race or move it, each with what it does. `warfence doctor` prints them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from warfence.backend_package import Variable
from warfence.cli.packages import frameworks

OURS = (
    Variable(
        "WARFENCE_FORCE_COARSE_WAR_BARRIER",
        "1: every barrier waits for the whole forward. Safe and slow: it hides a policy that releases too early.",
    ),
    Variable(
        "WARFENCE_FORCE_PREFILL_COARSE",
        "1: the barrier of a prefill step waits for the whole forward, whatever it published; the others are as they are.",
    ),
    Variable(
        "WARFENCE_ENABLE_PREFILL_WAR_READ_DONE",
        "1: an EXTEND launch may publish a ticket as well. Unset: prefill is always fenced coarse.",
    ),
)


def variables() -> tuple[Variable, ...]:
    """Our own, then those of each framework, in the order of the backends."""
    every = (*OURS, *(variable for one in frameworks().values() for variable in one.variables))
    return tuple({variable.name: variable for variable in every}.values())


def survey(environ: Mapping[str, str] | None = None) -> list[dict[str, str | None]]:
    """Name, value (None when unset) and effect of every variable, in the order of `variables`."""
    values = os.environ if environ is None else environ
    return [{"name": var.name, "value": values.get(var.name), "effect": var.effect} for var in variables()]
