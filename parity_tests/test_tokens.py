"""Law 15: tokens do not depend on the fence. Overlapped == serial == numpy reference, on every backend."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from parity_tests.small import SmallModel, first_difference, serve
from warfence.attention import KINDS
from warfence.backend import Backend
from warfence.modes import FenceMode

MakeBackend = Callable[..., Backend]


@pytest.mark.slow
@pytest.mark.parametrize("attention", KINDS)
@pytest.mark.parametrize("how", ["fine", "coarse", "serial"])
def test_tokens_are_those_of_the_reference(
    make_backend: MakeBackend, small: SmallModel, attention: str, how: str
) -> None:
    fence = FenceMode.COARSE if how == "coarse" else FenceMode.FINE
    requests, summary = serve(small, make_backend(), attention=attention, fence=fence, serial=how == "serial")
    assert first_difference(requests, small.expected[False]) is None
    for thing in ("retractions", "evictions", "later_chunks", "rows_recycled", "slots_recycled"):
        assert summary.happened[thing] > 0, f"the workload was to cause {thing}"
    if how == "serial":
        assert sum(summary.barriers.values()) == 0
    elif how == "coarse" or attention == "unknown":
        assert summary.barriers["fine"] == 0 < summary.barriers["coarse"]
    else:
        # Decode publishes, prefill does not (its switch is off).
        assert summary.barriers["fine"] == summary.steps_by_mode["decode"]
        assert summary.barriers["coarse"] == summary.steps_by_mode["extend"]


@pytest.mark.slow
def test_sampled_tokens_are_those_of_the_reference(make_backend: MakeBackend, small: SmallModel) -> None:
    requests, _ = serve(small, make_backend(), sampled=True)
    assert first_difference(requests, small.expected[True]) is None
    assert any(r.params.temperature > 0 for r in requests)


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["snapshot", "captured", "live", "composite"])
@pytest.mark.parametrize("fence", [FenceMode.FINE, FenceMode.COARSE])
@pytest.mark.parametrize("hold", ["first", "last"])
def test_text_survives_the_worst_order(
    make_backend: MakeBackend, small: SmallModel, attention: str, fence: FenceMode, hold: str
) -> None:
    """Policy case 21: the policy's own choice, under the adversarial order, leaves the output intact."""
    requests, summary = serve(small, make_backend(), attention=attention, fence=fence, forced_order=hold)
    assert first_difference(requests, small.expected[False]) is None
    assert summary.forced_order["waited"] > 0
    assert summary.forced_order["landed_before_read"] == 0


@pytest.mark.slow
def test_without_markers_the_policy_degrades_later(make_backend: MakeBackend, small: SmallModel) -> None:
    requests, summary = serve(small, make_backend(), attention="captured", markers=False)
    assert first_difference(requests, small.expected[False]) is None
    assert summary.policies["post_replay"] == summary.steps_by_mode["decode"]
    assert "in_graph" not in summary.policies


@pytest.mark.slow
def test_forced_coarse_takes_and_drops_the_ticket(
    make_backend: MakeBackend, small: SmallModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Policy case 18."""
    monkeypatch.setenv("WARFENCE_FORCE_COARSE_WAR_BARRIER", "1")
    requests, summary = serve(small, make_backend(), attention="captured")
    assert first_difference(requests, small.expected[False]) is None
    assert summary.policies["in_graph"] > 0, "tickets are still published"
    assert summary.barriers == {"fine": 0, "coarse": summary.steps, "off": 0}
