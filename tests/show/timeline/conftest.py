"""Timelines of the small model on any backend."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from warfence import backends
from warfence.core.backend import FORWARD, PLAN, SCHEDULE
from warfence.core.modes import FenceMode
from warfence.parity.small import first_difference, make_engine, small_model, workload
from warfence.show.observe import Observed, Tracer
from warfence.show.timeline.build import timeline
from warfence.show.timeline.model import Timeline
from warfence.show.timeline.run import profiled

model = cache(small_model)
Trace = Callable[..., Timeline]


def run(
    name: str, device: str = "cpu", fence: FenceMode = FenceMode.FINE, spec: str = "none",
    requests: int = 6, profile: Path | None = None,
) -> Timeline:  # fmt: skip
    """The workload of the small model, or its first requests. Its tokens are those of the numpy reference, but without a
    fence."""
    if backends.package(name).framework:
        pytest.importorskip(name)
    tracer, small = Tracer(), model()
    backend = Observed(backends.load(name)(device=device), tracer)
    with make_engine(small, backend, spec, attention="captured", rows=2, extend_rows=1) as engine:
        tracer.start()
        with profiled(backend.inner, profile):
            served = workload(False)[:requests]
            engine.run(served, fence=fence)
            for lane in (SCHEDULE, PLAN, FORWARD):
                backend.lane(lane).synchronize()
        if fence is not FenceMode.OFF:
            assert first_difference(served, small.expected[False][:requests]) is None
        return timeline(tracer, f"{name} {fence.value}")


@pytest.fixture(scope="session")
def trace() -> Trace:
    """trace(name, device, fence, ...): a timeline, made once for the same arguments."""
    made: dict[tuple[object, ...], Timeline] = {}

    def trace(name: str, device: str = "cpu", fence: FenceMode = FenceMode.FINE, spec: str = "none") -> Timeline:
        key = (name, device, fence, spec)
        if key not in made:
            made[key] = run(*key)
        return made[key]

    return trace
