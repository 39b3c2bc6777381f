"""What a mutant is: a small, plausible mistake in the neutral part or in a backend, and the law that must notice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from warfence.core.backend import Backend

Patch = Callable[[], AbstractContextManager[object]]


def _no_patch() -> AbstractContextManager[object]:
    return nullcontext()


def _same(backend: Backend) -> Backend:
    return backend


@dataclass(frozen=True, slots=True)
class Mutant:
    """`patch` replaces a function of the neutral part while it is entered; `wrap` spoils a fresh backend in place.

    right_by_value: wrong with tickets by event, and right where in-graph tickets are by value: then its law must hold.
    """

    id: str
    law: str
    sentence: str
    patch: Patch = _no_patch
    wrap: Callable[[Backend], Backend] = _same
    right_by_value: bool = False

    @property
    def spoils_backend(self) -> bool:
        return self.wrap is not _same
