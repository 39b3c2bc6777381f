"""What the demo serves: the shipped prompts on every built-in backend that is installed, and once without a fence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec

from warfence.backends import BUILT_IN, INSTALL
from warfence.core.errors import InputError
from warfence.core.modes import FenceMode
from warfence.serve.jobs.job import Job, prepare
from warfence.serve.jobs.options import ServeOptions


def installed() -> list[str]:
    """The built-in backends whose framework is installed; InputError when there is none."""
    found = [name for name in BUILT_IN if find_spec(name) is not None]
    if not found:
        raise InputError(f"no backend is installed; do one of: {'; '.join(INSTALL.values())}")
    return found


def missing() -> dict[str, str]:
    """Each built-in backend whose framework is not installed, and how to install it."""
    return {name: INSTALL[name] for name in BUILT_IN if find_spec(name) is None}


def jobs(names: Iterable[str], max_new_tokens: int) -> dict[str, Job]:
    """The same work for each backend: greedy, eight rows, fine fence."""
    return {name: prepare(ServeOptions(backend=name, max_new_tokens=max_new_tokens)) for name in names}


def without_fence(job: Job) -> Job:
    """The same work with the fence off, on tables that nothing else guards."""
    tables = "aliased" if job.options.backend == "jax" else None
    return replace(job, options=replace(job.options, fence=FenceMode.OFF.value, allow_hazard=True, tables=tables))
