"""How the torch backend stages uploads is an option, and only where there is something to stage."""

from __future__ import annotations

import pytest

from warfence.core.errors import InputError
from warfence_torch.backend import TorchBackend


def test_staging_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="unknown staging 'none'; choose one of: ring, fresh"):
        TorchBackend(staging="none")
    with pytest.raises(InputError, match="on the CPU nothing is staged"):
        TorchBackend(staging="fresh")


def test_worker_lanes_say_that_they_have_no_clock_between_them() -> None:
    backend = TorchBackend()
    try:
        with pytest.raises(InputError, match="worker lanes have no clock between them"):
            backend.barrier_latency_us(None, "page_table", None, iter(()), 1)  # type: ignore[arg-type]
    finally:
        backend.close()
