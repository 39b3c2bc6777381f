"""Law 15: tokens do not depend on the fence. Overlapped == serial == numpy reference, on every backend."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from warfence.core.attention import attention_names
from warfence.core.modes import FenceMode
from warfence.parity.small import SmallModel, first_difference, serve
from warfence.serve.engine import Engine

Target = tuple[str, str]
Engines = Callable[..., Engine]
pytestmark = pytest.mark.slow


def barriers(fine: int = 0, coarse: int = 0) -> dict[str, int]:
    return {"fine": fine, "coarse": coarse, "off": 0, "host": 0}


@pytest.mark.parametrize("attention", attention_names())
def test_tokens_do_not_depend_on_the_fence(target: Target, engines: Engines, small: SmallModel, attention: str) -> None:
    """Within a backend the three are equal without excuse; to the reference only a near tie may differ, and is said."""
    engine = engines(target, attention=attention)
    fine, summary = serve(engine, fence=FenceMode.FINE)
    assert first_difference(fine, small.expected[False]) is None
    for thing in ("retractions", "evictions", "later_chunks", "rows_recycled", "slots_recycled"):
        assert summary.happened[thing] > 0, f"the workload was to cause {thing}"
    if attention == "unknown":
        assert summary.barriers == barriers(coarse=summary.steps)
    else:  # decode publishes, prefill does not (its switch is off)
        by_mode = summary.steps_by_mode
        assert summary.barriers == barriers(fine=by_mode["decode"], coarse=by_mode["extend"])

    coarse, summary = serve(engine, fence=FenceMode.COARSE)
    assert [r.output for r in coarse] == [r.output for r in fine]
    assert summary.barriers == barriers(coarse=summary.steps)

    serial, summary = serve(engine, serial=True)
    assert [r.output for r in serial] == [r.output for r in fine]
    assert summary.barriers == barriers(), "a serial loop has nothing to fence"


def test_sampled_tokens_are_those_of_the_reference(target: Target, engines: Engines, small: SmallModel) -> None:
    requests, _ = serve(engines(target, attention="captured", sampled=True))
    assert first_difference(requests, small.expected[True]) is None
    assert any(r.params.temperature > 0 for r in requests)


@pytest.mark.parametrize("attention", ["snapshot", "captured", "live", "composite"])
@pytest.mark.parametrize("hold", ["first", "last"])
def test_text_survives_the_worst_order(
    target: Target, engines: Engines, small: SmallModel, attention: str, hold: str
) -> None:
    """The policy's own choice, and the coarse wait, leave the output intact in the adversarial order."""
    engine = engines(target, attention=attention, forced_order=hold)
    for fence in (FenceMode.FINE, FenceMode.COARSE):
        requests, summary = serve(engine, fence=fence)
        assert first_difference(requests, small.expected[False]) is None
        assert summary.forced_order["waited"] > 0
        assert summary.forced_order["landed_before_read"] == 0


def test_without_markers_the_policy_degrades_later(target: Target, engines: Engines, small: SmallModel) -> None:
    requests, summary = serve(engines(target, attention="captured", markers=False))
    assert first_difference(requests, small.expected[False]) is None
    assert summary.policies["post_replay"] == summary.steps_by_mode["decode"]
    assert "in_graph" not in summary.policies


def test_forced_coarse_takes_and_drops_the_ticket(
    target: Target, engines: Engines, small: SmallModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARFENCE_FORCE_COARSE_WAR_BARRIER", "1")
    requests, summary = serve(engines(target, attention="captured"), fence=FenceMode.FINE)
    assert first_difference(requests, small.expected[False]) is None
    assert summary.policies["in_graph"] > 0, "tickets are still published"
    assert summary.barriers == barriers(coarse=summary.steps)


def test_prefill_publishes_when_it_is_switched_on(
    target: Target, small: SmallModel, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EXTEND publishes PRE_REPLAY for a backend whose reads end at metadata init, only there."""
    monkeypatch.setenv("WARFENCE_ENABLE_PREFILL_WAR_READ_DONE", "1")
    # The rows setting keeps this engine apart from those that other tests made without the switch.
    requests, summary = serve(engines(target, attention="snapshot", extend_rows=1))
    assert first_difference(requests, small.expected[False]) is None
    assert summary.policies == {"pre_replay": summary.steps}
    assert summary.barriers["coarse"] == 0
