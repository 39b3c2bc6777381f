"""Prefill of a speculative algorithm: it publishes only where its reads are done, or were staged for that launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from warfence.core.attention import make_attention
from warfence.core.batch import Batch, BatchLayout, BatchRow, pack
from warfence.core.fence import WarBarrier
from warfence.core.forwards import FencePlan
from warfence.core.modes import ForwardMode, WarReadDonePolicy
from warfence.core.runner import Runner
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.fixture import Fixture
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.program import build, sliding_layers
from warfence.serve.model.weights import random_weights
from warfence.serve.spec import DFLASH, EAGLE, NGRAM, SpecAlgorithm, get

EXTEND, DECODE = ForwardMode.EXTEND, ForwardMode.DECODE
CONFIG = ModelConfig("m", 19, 8, 2, 2, 1, 4, 8, (True, False), 4, 16, 1e4, 1e-5, (0,), None)


def test_promises_default_to_none_at_all() -> None:
    algorithm = SpecAlgorithm("plug-in")
    assert algorithm.speculative
    assert not algorithm.supports_target_verify_read_done
    assert not algorithm.supports_draft_extend_read_done
    assert not algorithm.supports_prefill_read_done
    assert algorithm.prefill_stager is None
    assert algorithm.phases(EXTEND) == (("target", EXTEND),)


def test_what_the_built_in_ones_promise() -> None:
    promises = {
        a.name: (a.supports_target_verify_read_done, a.supports_draft_extend_read_done, a.supports_prefill_read_done)
        for a in (DFLASH, EAGLE, NGRAM, get("ngram-snapshot"))
    }
    assert promises == {
        "dflash": (True, False, True),
        "eagle": (False, True, False),
        "ngram": (False, False, False),
        "ngram-snapshot": (True, False, True),
    }


@dataclass
class Served:
    """One forward on the strict backend with a runner and a barrier, under an algorithm with that stager."""

    stager: Callable[[Batch], bool] | None
    attention: str = "snapshot"
    mode: ForwardMode = EXTEND
    prefill_enabled: bool = True
    promise: bool = False

    def __post_init__(self) -> None:
        weights = random_weights(CONFIG, seed=0)
        self.fixture = Fixture.of_model(StrictBackend(), CONFIG, weights, context=16, rows=3, slots=20)
        attention = make_attention(self.attention, sliding_layers(CONFIG))
        layout = BatchLayout(1, 4 if self.mode is EXTEND else 1)
        self.batch = pack(layout, [BatchRow(1, 0, (3,), (1,), False, 0.0, 1.0, ())])
        spec = SpecAlgorithm("staged", supports_prefill_read_done=self.promise, prefill_stager=self.stager)
        fence = FencePlan(attention, spec, self.prefill_enabled)
        program = build(CONFIG, attention, self.mode, layout, sampled=False)
        self.planned = fence.planned(self.fixture.forward(program, fence.marker_stage(self.mode)))
        self.schedule, self.forward = self.fixture.schedule, self.fixture.lane
        self.runner, self.barrier = Runner("target", self.forward, self.schedule), WarBarrier()

    def launch(self) -> str:
        """Issue one launch with its barrier; gives the policy that was followed."""
        number, before = next(self.fixture.launches), self.runner.policies.copy()
        outputs = self.runner.execute(self.planned, self.batch, number)
        self.barrier.apply(number, self.runner.mailbox, self.schedule, self.forward)
        assert "next_tokens" in outputs.result()
        return next(iter(self.runner.policies - before))


def test_it_publishes_after_the_stager_said_so_and_only_for_that_launch() -> None:
    answers, asked = [True, False, True], []

    def stager(batch: Batch) -> bool:
        asked.append(batch)
        return answers[len(asked) - 1]

    served = Served(stager)
    assert [served.launch() for _ in answers] == ["pre_replay", "none", "pre_replay"]
    assert (served.barrier.counts.fine, served.barrier.counts.coarse) == (2, 1)
    assert len(asked) == 3, "once a launch"
    assert all(batch is served.batch for batch in asked)


def test_the_stager_is_asked_when_the_batch_is_loaded_and_before_the_ticket() -> None:
    order: list[str] = []
    served = Served(lambda batch: order.append("stage") is None)
    forward, lane = served.planned.forward, served.forward
    load, replay, record = forward.load_batch, forward.replay, lane.record
    forward.load_batch = lambda *a: (order.append("load"), load(*a))[1]  # type: ignore[method-assign]
    forward.replay = lambda *a: (order.append("replay"), replay(*a))[1]  # type: ignore[method-assign]
    lane.record = lambda launch: (order.append("record"), record(launch))[1]  # type: ignore[method-assign]
    served.launch()
    assert order == ["load", "stage", "record", "replay"]


def test_a_stager_that_fails_leaves_no_ticket_and_the_next_launch_works() -> None:
    def stager(batch: Batch) -> bool:
        if first:
            raise RuntimeError("no room to stage")
        return True

    first, served = [1], Served(stager)
    with pytest.raises(RuntimeError, match="no room to stage"):
        served.launch()
    assert served.runner.mailbox.take() is None
    assert served.runner.session.failures == 1
    first.clear()
    assert served.launch() == "pre_replay"


@pytest.mark.parametrize(
    ("how", "policy"),
    [
        ({"prefill_enabled": False}, "none"),
        ({"mode": DECODE}, "pre_replay"),
        ({"attention": "captured"}, "none"),
        ({"attention": "live"}, "none"),
        ({"attention": "unknown"}, "none"),
        ({"promise": True}, "pre_replay"),
    ],
    ids=str,
)
def test_a_stager_whose_answer_counts_for_nothing_is_not_asked(how: dict[str, Any], policy: str) -> None:
    """The switch, the mode and the attention backend have to agree, and there is nothing to stage where it is promised."""
    for answer in (True, False):
        asked: list[Batch] = []
        served = Served(lambda batch, asked=asked, answer=answer: asked.append(batch) or answer, **how)
        assert (served.launch(), asked) == (policy, [])


def test_without_a_stager_the_promise_decides_alone() -> None:
    assert Served(None).launch() == "none"
    assert Served(None, promise=True).launch() == "pre_replay"
    assert Served(None, promise=True).planned.decision.policy is WarReadDonePolicy.PRE_REPLAY
