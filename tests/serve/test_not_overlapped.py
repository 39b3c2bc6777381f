"""Overlap off for one batch, and prefill forced coarse: the same tokens, and the counters say so."""

from __future__ import annotations

import pytest

from tests.strict_log import writes_before_earlier_reads
from warfence.core.modes import FenceMode
from warfence.parity.small import first_difference, make_engine, serve, small_model, workload
from warfence.parity.strict.backend import StrictBackend

SMALL = small_model()


@pytest.mark.parametrize("fence", [FenceMode.FINE, FenceMode.COARSE])
def test_consecutive_prefills_wait_for_each_other_where_that_is_asked_for(fence: FenceMode) -> None:
    counts = {}
    for overlap in (True, False):
        with make_engine(SMALL, StrictBackend(), rows=4, extend_rows=1, prefills_overlap=overlap) as engine:
            requests, summary = serve(engine, fence=fence)
            assert writes_before_earlier_reads(engine.backend.log) == []
        assert first_difference(requests, SMALL.expected[False]) is None
        counts[overlap] = summary.happened["not_overlapped"]
        assert sum(summary.barriers.values()) == summary.steps, "each launch has its barrier all the same"
    assert counts[True] == 0 < counts[False] < summary.steps


def test_a_request_whose_token_the_host_must_know_never_decodes_ahead_of_it() -> None:
    known: list[int] = []
    with make_engine(SMALL, StrictBackend()) as engine:
        requests = workload(False)
        for request in requests:
            request.needs_token = True
        summary = engine.run(requests, lambda request, token: known.append(request.flying))
        assert writes_before_earlier_reads(engine.backend.log) == []
    assert first_difference(requests, SMALL.expected[False]) is None
    assert summary.happened["not_overlapped"] >= summary.steps_by_mode["decode"] // 2


@pytest.mark.parametrize("spec", ["none", "eagle"])
def test_prefill_alone_can_be_forced_coarse(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fine = {}
    for forced in ("0", "1"):
        monkeypatch.setenv("WARFENCE_FORCE_PREFILL_COARSE", forced)
        with make_engine(SMALL, StrictBackend(), spec, attention="snapshot", prefill=True) as engine:
            requests, summary = serve(engine)
        assert first_difference(requests, SMALL.expected[False]) is None
        fine[forced] = summary.barriers["fine"]
        assert summary.barriers["fine"] + summary.barriers["coarse"] == summary.steps
    assert fine["1"] == fine["0"] - summary.steps_by_mode["extend"] > 0
