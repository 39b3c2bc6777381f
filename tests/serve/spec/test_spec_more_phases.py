"""More than two launches in a step: each layer of a draft on a runner of its own, and the last one owns the mailbox.

A stand-in for a draft of two layers: both launches read the page table, and both leave proposals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.strict_log import writes_before_earlier_reads
from warfence.core.attention import AttentionBackend
from warfence.core.batch import BatchLayout
from warfence.core.modes import FenceMode, ForwardMode
from warfence.core.program import ForwardProgram
from warfence.core.scheduler import Launch, Scheduler
from warfence.parity.small import BLOCK, SIZES, SmallModel, first_difference, serve, small_draft
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.engine import Engine, EngineConfig
from warfence.serve.model.config import ModelConfig
from warfence.serve.spec import EAGLE, Draft
from warfence.serve.spec.eagle import Eagle, eagle

VERIFY, EXTEND, DRAFT_EXTEND = ForwardMode.TARGET_VERIFY, ForwardMode.EXTEND, ForwardMode.DRAFT_EXTEND
ROOM = {"slots": 400, "swa_slots": 200}


@dataclass(frozen=True, slots=True)
class Layered(Eagle):
    def draft_extend(self, attention: AttentionBackend, layout: BatchLayout, nth: int = 0) -> ForwardProgram:
        made = Eagle.draft_extend(self, attention, layout)
        return replace(made, name=f"{made.name}/layer {nth}")


def layered(config: ModelConfig, draft: Draft | None, block: int | None) -> Layered:
    one = eagle(config, draft, block)
    return Layered(one.config, one.draft, one.block)


LAYERED = replace(EAGLE, name="layered", make=layered, draft_launches=2)


@pytest.fixture
def engine(small: SmallModel) -> Iterator[Engine]:
    config = EngineConfig(**{**SIZES, **ROOM}, attention="captured", mixed=True)
    with Engine(
        config, small.config, small.weights, StrictBackend(), LAYERED, small_draft(small.config, "eagle"), BLOCK
    ) as made:
        programs = [*made.warm_up()]
        assert len(programs) == len(made.wanted())
        yield made


def test_the_last_of_the_drafts_launches_owns_the_step() -> None:
    assert LAYERED.phases(VERIFY) == (("target", VERIFY), ("draft", DRAFT_EXTEND), ("draft.1", DRAFT_EXTEND))
    assert LAYERED.phases(ForwardMode.DECODE) == (("target", ForwardMode.DECODE),)
    assert EAGLE.runners() == ("target", "draft")


def test_each_layout_has_a_program_of_each_layer(engine: Engine) -> None:
    drafts = [p.forward.program for p in engine.forwards.all() if p.forward.program.mode is DRAFT_EXTEND]
    first, second = ({p.layout for p in drafts if p.name.endswith(layer)} for layer in ("/layer 0", "/layer 1"))
    assert first == second == {p.layout for p in drafts}
    assert len(drafts) == 2 * len(first)


def test_the_text_is_right_and_every_step_with_a_draft_is_fine(engine: Engine, small: SmallModel) -> None:
    for how in ({"fence": FenceMode.FINE}, {"fence": FenceMode.COARSE}, {"serial": True}):
        requests, summary = serve(engine, **how)
        assert first_difference(requests, small.expected[False]) is None
        assert summary.steps_by_mode["target_verify"] > 0
        if how.get("fence") is FenceMode.FINE:
            assert summary.barriers["fine"] == summary.steps
    assert writes_before_earlier_reads(engine.backend.log) == []


def test_the_ticket_of_the_layer_before_lets_writes_overtake_the_last_ones_reads(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_draft_owns(self: Scheduler, launch: Launch[Any]) -> None:
        drafted = launch.plan.mode in (VERIFY, EXTEND)
        owner, number = ("draft", launch.number - 1) if drafted else (launch.owner, launch.number)
        for name, runner in self.runners.items():
            if name != owner:
                runner.mailbox.clear()
        self.barrier.apply(number, self.runners[owner].mailbox, self.schedule, self.forward)

    monkeypatch.setattr(Scheduler, "_apply_barrier", first_draft_owns)
    serve(engine, fence=FenceMode.FINE)
    assert {read.stage for _, read in writes_before_earlier_reads(engine.backend.log)} == {"page_table"}
