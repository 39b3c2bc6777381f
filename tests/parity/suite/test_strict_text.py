"""Served by the strict backend, a wrong fence shows in the text at once and every time: no gates, no forced order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.strict_log import writes_before_earlier_reads
from warfence.backends import available, load
from warfence.core.attention import attention_names
from warfence.core.modes import FenceMode
from warfence.core.program import ForwardProgram
from warfence.core.runner import Runner
from warfence.parity.small import SmallModel, first_difference, make_engine, serve, small_model
from warfence.parity.strict.backend import StrictBackend
from warfence.parity.strict.forward import StrictForward
from warfence.serve.engine import tokens_sha256


@pytest.fixture(scope="module")
def small() -> SmallModel:
    return small_model()


def test_it_is_known_but_not_offered() -> None:
    assert load("strict") is StrictBackend
    assert "strict" not in available()


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ["war", "raw"])
@pytest.mark.parametrize("attention", attention_names())
def test_the_right_fence_is_right_whatever_the_order(small: SmallModel, attention: str, adversary: str) -> None:
    backend = StrictBackend(adversary=adversary)
    with make_engine(small, backend, attention=attention) as engine:
        for fence in (FenceMode.FINE, FenceMode.COARSE):
            assert first_difference(serve(engine, fence=fence)[0], small.expected[False]) is None
    assert writes_before_earlier_reads(backend.log) == []
    assert any(entry.kind == "write" for entry in backend.log)


@pytest.mark.slow
@pytest.mark.parametrize("attention", attention_names())
def test_without_a_fence_the_text_is_wrong_in_the_same_way_every_time(small: SmallModel, attention: str) -> None:
    digests, logs = [], []
    for _ in range(2):
        backend = StrictBackend()
        with make_engine(small, backend, attention=attention, fence=FenceMode.OFF) as engine:
            requests, _ = serve(engine)
        assert first_difference(requests, small.expected[False]) is not None
        assert writes_before_earlier_reads(backend.log)
        digests.append(tokens_sha256(requests))
        logs.append(backend.log)
    assert digests[0] == digests[1]
    assert logs[0] == logs[1]


class Early(StrictBackend):
    """Plants every marker one stage too early."""

    def compile(self, program: ForwardProgram, *, marker_after: str | None = None, **how: Any) -> StrictForward:
        early = program.before(marker_after) if marker_after is not None else None
        return super().compile(program, marker_after=early, **how)


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["captured", "live"])
def test_a_ticket_one_stage_too_early_is_seen(small: SmallModel, attention: str) -> None:
    backend = Early()
    with make_engine(small, backend, attention=attention) as engine:
        assert first_difference(serve(engine)[0], small.expected[False]) is not None
    assert {read.stage.split(".")[0] for _, read in writes_before_earlier_reads(backend.log)} == {"swa_translate"}


@pytest.mark.slow
@pytest.mark.parametrize(("adversary", "seen"), [("war", False), ("raw", True)])
def test_a_missing_wait_for_the_plan_is_seen_by_the_other_adversary(
    small: SmallModel, monkeypatch: pytest.MonkeyPatch, adversary: str, seen: bool
) -> None:
    """Read after write (law 13). The WAR adversary never shows it: there, writes are always early."""
    init = Runner.__init__

    def without_wait(self: Runner, name: str, forward: Any, schedule: Any) -> None:
        init(self, name, forward, schedule)
        self._forward_lane = type("NoWait", (), {"wait_lane": lambda s, o: None, "record": forward.record})()

    monkeypatch.setattr(Runner, "__init__", without_wait)
    with make_engine(small, StrictBackend(adversary=adversary), attention="captured") as engine:
        assert (first_difference(serve(engine)[0], small.expected[False]) is not None) is seen


@pytest.mark.slow
def test_without_external_markers_it_degrades_later(small: SmallModel) -> None:
    backend = StrictBackend(external_markers=False)
    assert backend.capabilities.reasons["external_markers"] == "switched off"
    with make_engine(small, backend, attention="captured") as engine:
        requests, summary = serve(engine)
    assert first_difference(requests, small.expected[False]) is None
    assert summary.policies == {"post_replay": summary.steps_by_mode["decode"], "none": summary.steps_by_mode["extend"]}
