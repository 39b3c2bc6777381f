"""Speculation is lossless and fenced: tokens are those of plain decoding, in every order that the fence permits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from parity_tests.plugin import unguarded_options
from warfence.core.modes import FenceMode
from warfence.parity.small import SmallModel, first_difference, serve
from warfence.serve.engine import Engine

Target = tuple[str, str]
Engines = Callable[..., Engine]
pytestmark = pytest.mark.slow

# Fewer rows than the default engines, so that fewer forwards are compiled; and room for a block, or for one and a half.
ROOMY = {"rows": 2, "extend_rows": 1, "slots": 200, "swa_slots": 90}
TIGHT = {"rows": 2, "extend_rows": 1, "slots": 64, "swa_slots": 34}
EACH = [("ngram", False, ROOMY, ()), ("ngram-snapshot", False, ROOMY, ("target_verify",)),
        ("dflash", True, ROOMY, ("target_verify",)),
        ("eagle", False, TIGHT, ("target_verify", "extend", "decode"))]  # fmt: skip


@pytest.mark.parametrize(("spec", "sampled", "pools", "fine"), EACH, ids=[case[0] for case in EACH])
def test_tokens_are_those_of_plain_decoding(
    target: Target, engines: Engines, small: SmallModel, spec: str, sampled: bool, pools: dict[str, int],
    fine: tuple[str, ...],
) -> None:  # fmt: skip
    """And the last reader of a step publishes. ngram reads on after its verify. In eagle's steps the draft reads last; where
    there are no slots for a block the step decodes plainly, and there the target reads last: the owner moves."""
    engine = engines(target, spec=spec, attention="captured", sampled=sampled, **pools)
    for fence in (FenceMode.FINE, FenceMode.COARSE, FenceMode.SELF):
        requests, summary = serve(engine, fence=fence)
        assert first_difference(requests, small.expected[sampled]) is None
        assert summary.steps_by_mode["target_verify"] > 0
        assert summary.happened["slots_returned"] > 0, "what was not accepted comes back"
        assert summary.spec["fallbacks"] == summary.steps_by_mode.get("decode", 0)
        assert (summary.spec["fallbacks"] > 0) is (pools is TIGHT)
        if fence is FenceMode.FINE:
            assert summary.barriers["fine"] == sum(summary.steps_by_mode.get(mode, 0) for mode in fine)
            assert summary.barriers["coarse"] == summary.steps - summary.barriers["fine"]
    assert summary.barriers["host"] == summary.steps
    requests, _ = serve(engine, serial=True)
    assert first_difference(requests, small.expected[sampled]) is None


@pytest.mark.parametrize("spec", ["dflash", "eagle"])
def test_text_survives_the_worst_order_and_not_without_a_fence(
    target: Target, engines: Engines, small: SmallModel, spec: str
) -> None:
    engine = engines(target, unguarded_options(target), spec=spec, attention="captured", forced_order="first", **ROOMY)
    requests, summary = serve(engine, fence=FenceMode.FINE)
    assert first_difference(requests, small.expected[False]) is None
    assert summary.forced_order["waited"] > 0
    assert summary.forced_order["landed_before_read"] == 0
    requests, summary = serve(engine, fence=FenceMode.OFF)
    assert summary.forced_order["landed_before_read"] > 0
    assert first_difference(requests, small.expected[False]) is not None


@pytest.mark.parametrize("config", [{"mixed": True}, {"idle": True}], ids=lambda config: next(iter(config)))
def test_mixed_and_idle_batches_wait_coarsely(
    target: Target, engines: Engines, small: SmallModel, config: dict[str, bool]
) -> None:
    requests, summary = serve(engines(target, attention="captured", rows=4, extend_rows=2, **config))
    assert first_difference(requests, small.expected[False]) is None
    assert summary.steps_by_mode[next(iter(config))] > 0
    assert summary.barriers["fine"] == summary.steps_by_mode["decode"]
