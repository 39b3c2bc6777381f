"""On a GPU: every strategy gives the serial results, fresh staging and barrier latency included."""

from __future__ import annotations

from functools import partial

import pytest

from warfence.bench.group import Group, chosen
from warfence.bench.measure import measure
from warfence.host.meter import Meter
from warfence.serve.jobs.start import open_backend

from .conftest import LITTLE, SMALL

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


@pytest.mark.parametrize(
    ("backend", "left_out"), [("torch", {"donation_only", "copied_tables"}), ("jax", {"fresh_staging"})]
)
def test_every_strategy_on_a_gpu(backend: str, left_out: set[str]) -> None:
    group = Group(backend, partial(open_backend, backend, "cuda"), SMALL, chosen([]), LITTLE, Meter())
    try:
        (result,) = measure([(group, SMALL)])
    finally:
        group.close()
    assert set(result.unavailable) == left_out
    assert (result.barrier_latency_us is not None) == (backend == "torch")
