"""A small model keeps the libraries to one thread; a choice of the user stands."""

from __future__ import annotations

import os

import pytest

from warfence.serve.jobs.start import SMALL_MODEL_WEIGHTS, one_thread_for_small


@pytest.mark.parametrize(
    ("weights", "chosen", "seen"),
    [(2_000_000, None, "1"), (2_000_000, "4", "4"), (SMALL_MODEL_WEIGHTS, None, None)],
)
def test_threads(weights: int, chosen: str | None, seen: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if chosen is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", chosen)
    one_thread_for_small(weights)
    assert os.environ.get("OMP_NUM_THREADS") == seen
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # undone by monkeypatch, whatever was set meanwhile
