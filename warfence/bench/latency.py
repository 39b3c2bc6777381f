"""How long it takes from the read boundary to the first write behind the barrier, where a backend has clocks there."""

from __future__ import annotations

from collections.abc import Iterator

from warfence.bench.spread import Spread
from warfence.core.abilities import TimesBarrier
from warfence.core.backend import Backend
from warfence.core.batch import Batch
from warfence.core.errors import InputError
from warfence.core.program import ForwardProgram


def barrier_latency_us(
    backend: Backend, program: ForwardProgram, marker_after: str | None, batch: Batch, launches: Iterator[int], rounds: int
) -> tuple[Spread | None, str | None]:  # fmt: skip
    """(what was measured, None), or (None, why nothing could be)."""
    if not isinstance(backend, TimesBarrier):
        return None, f"backend {backend.name} offers no clocks on both lanes"
    if marker_after is None:
        return None, "the forward has no marker"
    try:
        return Spread.of(backend.barrier_latency_us(program, marker_after, batch, launches, rounds)), None
    except InputError as reason:
        return None, str(reason)
