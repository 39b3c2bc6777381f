"""What the families hold: every case is found again by its index, and arithmetic decides by hand-picked places."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from warfence.races.scenarios.text import text
from warfence.races.sweep.families import FAMILIES, FENCED, RANDOM, SHORT
from warfence.races.sweep.fence import FENCE, oracle
from warfence.races.sweep.fence import Place as Loop
from warfence.races.sweep.named import NAMED
from warfence.races.sweep.options import DRAWN_CASES, SweepOptions
from warfence.races.sweep.ring import RING
from warfence.races.sweep.ring import Place as Ring
from warfence.races.sweep.ring import oracle as ring_oracle

LOOP = Loop("in_graph", 1, "both", "after_launch", "absent", "target", "target", depth=1, steps=3)
SLOTS = Ring("host", depth=2, events=2, lag=2, recorded=1, steps=4)


@pytest.mark.slow
def test_every_index_of_an_exhaustive_family_is_another_case() -> None:
    texts = {text(SHORT.case(index, 2, 0).scenario).partition("\n\n")[2] for index in range(SHORT.size(2))}
    assert len(texts) == SHORT.size(2) == 8 + 8 * 16
    indices = range(0, FENCE.size(1), 97)
    assert len({FENCE.case(index, 1, 0).place for index in indices}) == len(indices)


@pytest.mark.parametrize("family", [RANDOM, FENCED])
def test_a_random_case_is_given_again_by_index_and_seed(family) -> None:
    assert family.case(5, 3, 1) == family.case(5, 3, 1)
    assert family.case(5, 3, 1).scenario.body != family.case(5, 3, 2).scenario.body


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "ok"),
        ({"policy": "pre_replay"}, "bad"),
        ({"policy": "post_replay"}, "over"),
        ({"policy": "none"}, "over"),
        ({"policy": "none", "last": 3}, "ok"),
        ({"policy": "off"}, "bad"),
        ({"policy": "off", "writes": "plan", "steps": 1}, "ok"),
        ({"barrier": "loop_top"}, "bad"),
        ({"barrier": "loop_top", "writes": "plan"}, "ok"),
        ({"plan_lane": "inherits"}, "ok"),
        ({"plan_lane": "bypasses"}, "bad"),
        ({"owner": "draft"}, "bad"),  # the target's ticket, and the draft reads later
        ({"owner": "draft", "asked": "draft"}, "ok"),
        ({"asked": "draft"}, "over"),  # a mailbox that nobody filled: coarse
    ],
)
def test_what_a_loop_has_to_be(change, verdict: str) -> None:
    assert oracle(replace(LOOP, **change)) == verdict


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "ok"),
        ({"lag": 3, "events": 3}, "bad"),
        ({"lag": 3}, "over"),  # the event was recorded again: it holds launch i - 1, which reads another slot
        ({"lag": 1}, "over"),  # each turn waits for a launch that reads another slot
        ({"recorded": 0}, "bad"),
        ({"recorded": 0, "lag": 1}, "over"),
        ({"recorded": 2}, "over"),
        ({"steps": 2}, "ok"),  # no wait finds a record
        ({"depth": 4}, "over"),  # no slot comes round
    ],
)
def test_what_a_ring_has_to_be(change, verdict: str) -> None:
    assert ring_oracle(replace(SLOTS, **change)) == verdict


def test_chunks_hold_each_chosen_case_once() -> None:
    plan = SweepOptions(tuple(FAMILIES), steps=2, limit=None, seed=0)
    chunks = plan.chunks()
    assert [one.number for one in chunks] == list(range(len(chunks)))
    cases = [(one.family, index) for one in chunks for index in one.indices]
    sizes = {"fence": FENCE.size(2), "ring": FAMILIES["ring"].size(2), "short": SHORT.size(2), "named": NAMED.size(2)}
    assert len(set(cases)) == len(cases) == sum(sizes.values()) + 5 * DRAWN_CASES
    limited = replace(plan, limit=10).chunks()
    assert sum(len(one.indices) for one in limited) == 10 * len(FAMILIES)
    assert replace(plan, limit=10, seed=1).chunks()[0] != limited[0]


def test_the_oracles_say_nothing_but_verdicts_and_each_of_ok_bad_and_over() -> None:
    for family in (FENCE, RING, NAMED):
        axes = family.axes(2)
        places = (family.place(**dict(zip(axes, values, strict=True))) for values in product(*axes.values()))
        assert set(map(family.oracle, places)) - {"cycle"} == {"ok", "bad", "over"}
