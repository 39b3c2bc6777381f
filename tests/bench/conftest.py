"""One small case measured once on the strict backend: what its figures are does not matter, their form does."""

from __future__ import annotations

from functools import partial

import pytest

from warfence.bench.cases import Case
from warfence.bench.group import Effort, Group
from warfence.bench.measure import Measurement
from warfence.bench.results import CaseResult
from warfence.bench.strategies import STRATEGIES
from warfence.host.meter import Meter
from warfence.serve.jobs.start import open_backend

LITTLE = Effort(rounds=2, steps=8, block_s=0.001, bursts=1, memory_steps=9)
SMALL = Case("1x32", writes=3, batch=2, table_rows=8)


@pytest.fixture(scope="session")
def measured() -> tuple[CaseResult, list[str]]:
    """The result of every strategy, and the order in which blocks ran."""
    group = Group("strict", partial(open_backend, "strict", "cpu"), SMALL, STRATEGIES, LITTLE, Meter())
    try:
        measurement = Measurement(group, SMALL)
        for _ in range(LITTLE.rounds):
            measurement.round()
        return measurement.result(), measurement.order
    finally:
        group.close()


@pytest.fixture(scope="session")
def result(measured: tuple[CaseResult, list[str]]) -> CaseResult:
    return measured[0]
