"""What an engine makes of an algorithm: the forwards that it captures, and the sizes that a block asks for."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tests.parity.suite.paged import random_draft
from warfence.core.batch import BatchLayout
from warfence.core.modes import ForwardMode
from warfence.parity.small import SmallModel
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.engine import Engine, EngineConfig
from warfence.serve.spec import NGRAM, get

DECODE, EXTEND, VERIFY, DRAFT_EXTEND, IDLE = (
    ForwardMode.DECODE, ForwardMode.EXTEND, ForwardMode.TARGET_VERIFY, ForwardMode.DRAFT_EXTEND, ForwardMode.IDLE,
)  # fmt: skip


def test_an_engine_captures_each_launch_that_serving_can_ask_for(small: SmallModel) -> None:
    sizes = EngineConfig(rows=2, extend_rows=1, chunk=6, context=32, sampled=True, idle=True)
    draft = random_draft(small.config, "eagle")
    engine = Engine(sizes, small.config, small.weights, StrictBackend(), get("eagle"), draft, 3)
    wanted = engine.wanted()
    assert len(set(wanted)) == len(wanted)
    drafts = [(layout, sampled) for mode, layout, sampled in wanted if mode is DRAFT_EXTEND]
    assert drafts == [(BatchLayout(1, 6), False), (BatchLayout(1, 3, 6), False), (BatchLayout(2, 3, 6), False)]
    assert {(m, s) for m, _, s in wanted} == {
        *itertools.product((DECODE, EXTEND, VERIFY, IDLE), (False, True)),
        (DRAFT_EXTEND, False),
    }
    assert {layout.draws for mode, layout, _ in wanted if mode is DECODE} == {3}
    assert engine.limits.block == 3


def test_without_an_algorithm_or_with_one_of_one_launch_there_is_no_draft_extend(small: SmallModel) -> None:
    plain = Engine(EngineConfig(rows=2, context=32), small.config, small.weights, StrictBackend())
    assert {mode for mode, _, _ in plain.wanted()} == {DECODE, EXTEND}
    assert all(layout.draws == 1 for _, layout, _ in plain.wanted())
    ngram = Engine(EngineConfig(rows=2, context=32), small.config, small.weights, StrictBackend(), NGRAM)
    assert {mode for mode, _, _ in ngram.wanted()} == {DECODE, EXTEND, VERIFY}


@pytest.mark.parametrize("block", [2, 6])
def test_a_row_has_room_for_the_verify_in_flight_and_the_next(small: SmallModel, block: int) -> None:
    plain, speculating = (EngineConfig(rows=4).limits(small.config, b) for b in (1, block))
    assert speculating.slots == plain.slots + 4 * 2 * block
    assert speculating.swa_slots == plain.swa_slots + 4 * 2 * block
    assert (plain.block, speculating.block) == (1, block)
    assert replace(speculating, slots=0, swa_slots=0, block=1) == replace(plain, slots=0, swa_slots=0)


def test_given_sizes_stay_as_they_are(small: SmallModel) -> None:
    limits = EngineConfig(rows=4, slots=50, swa_slots=45).limits(small.config, 6)
    assert (limits.slots, limits.swa_slots) == (51, 46)


def test_a_mixed_batch_brings_draws_for_a_row_that_stands_a_block_further(small: SmallModel) -> None:
    made = Engine(
        EngineConfig(mixed=True, rows=2, chunk=5, context=32), small.config, small.weights, StrictBackend(), NGRAM
    )
    assert {layout.draws for mode, layout, _ in made.wanted() if mode is ForwardMode.MIXED} == {5 + made.limits.block}
