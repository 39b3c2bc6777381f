"""What the demo serves: the shipped prompts on the first two backends that are installed, and once without a fence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from warfence import backends
from warfence.core.modes import FenceMode
from warfence.serve.jobs.job import Job, prepare
from warfence.serve.jobs.options import ServeOptions


def pair() -> list[str]:
    """The first two backends, in the order of `backends.available`, that are installed; one, where there is no other.

    InputError when there is none.
    """
    return backends.installed()[:2]


def missing(names: Sequence[str]) -> dict[str, str]:
    """What would make a pair of one backend: each that is not installed, and how to install it."""
    return {} if len(names) > 1 else backends.missing()


def jobs(names: Iterable[str], max_new_tokens: int) -> dict[str, Job]:
    """The same work for each backend: greedy, eight rows, fine fence."""
    return {name: prepare(ServeOptions(backend=name, max_new_tokens=max_new_tokens)) for name in names}


def without_fence(job: Job) -> Job:
    """The same work with the fence off, on tables that nothing else guards."""
    tables = backends.package(job.options.backend).unguarded.get("tables")
    return replace(job, options=replace(job.options, fence=FenceMode.OFF.value, allow_hazard=True, tables=tables))
