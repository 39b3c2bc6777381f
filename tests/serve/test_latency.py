"""What users wait: of times that are given, and that a run notes them for every token."""

from __future__ import annotations

import pytest

from warfence.parity.small import make_engine, serve, small_model
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.latency import Latency, Percentiles, occupancy
from warfence.serve.requests import Request


def request(arrival_s: float, *heard_s: float) -> Request:
    return Request(0, (1,), 9, arrival_s=arrival_s, heard_s=list(heard_s))


def test_the_first_token_counts_from_the_arrival_and_the_next_from_the_one_before() -> None:
    found = Latency.of([request(1.0, 1.5, 1.75, 1.75), request(0.0, 1.0)])
    assert found.ttft_ms == Percentiles(750.0, 950.0, 995.0)
    assert found.itl_ms == Percentiles(125.0, 225.0, 247.5)


def test_who_heard_nothing_did_not_wait() -> None:
    assert Latency.of([request(0.0)]) == Latency(None, None)
    assert Latency.of([request(0.0, 0.5)]).itl_ms is None


@pytest.mark.parametrize(
    ("device", "share"), [([1.0, 0.5], 0.75), ([1.0, None], None), ([], None), ([None], None)], ids=str
)
def test_occupancy_is_told_only_where_all_launches_are(device: list[float | None], share: float | None) -> None:
    assert occupancy(device, 2.0) == share


@pytest.mark.parametrize("spec", ["none", "eagle"])
def test_a_run_notes_when_each_token_was_known(spec: str) -> None:
    with make_engine(small_model(), StrictBackend(), spec) as engine:
        requests, summary = serve(engine)
    for one in requests:
        assert len(one.heard_s) == len(one.output) == len(one.margins)
        assert one.heard_s == sorted(one.heard_s)
        assert one.heard_s[0] >= one.arrival_s
    assert summary.latency == Latency.of(requests)
    assert max(one.heard_s[-1] for one in requests) <= summary.seconds
