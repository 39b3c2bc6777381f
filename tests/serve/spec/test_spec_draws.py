"""Draws: the k-th that a row uses is the number of (seed, request, position) for the token it chooses, wherever it stands."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.suite.by_hand import i32, run
from tests.serve.spec.planning import PlainTables
from warfence.core.batch import BatchLayout, pack
from warfence.core.modes import ForwardMode
from warfence.serve.holdings import Limits
from warfence.serve.planner import Plan, Planner
from warfence.serve.requests import Request
from warfence.serve.sampling import SamplingParams, uniform

BLOCK, SEED, PROMPT = 4, 11, 5
LIMITS = Limits(context=30, rows=4, slots=80, swa_slots=2, chunk=8, extend_rows=2, window=None, block=BLOCK)
VERIFY, DECODE, EXTEND = ForwardMode.TARGET_VERIFY, ForwardMode.DECODE, ForwardMode.EXTEND
LAYOUTS = {VERIFY: BatchLayout(2, BLOCK, 2 * BLOCK), DECODE: BatchLayout(2, 1, BLOCK), EXTEND: BatchLayout(2, 8)}


def planned(steps: int, fallback: bool = False) -> tuple[Plan, Request]:
    """The last of so many plans in a row, none of whose results is known; that one without slots for a block if wanted."""
    planner = Planner(LIMITS, PlainTables(LIMITS), None)
    request = Request(7, (1,) * PROMPT, 20, SamplingParams(0.8, 0.9, SEED))
    planner.add(Request(6, (2, 2), 20))  # greedy: brings no draws
    planner.add(request)
    for _ in range(steps - 1):
        planner.plan()
    if fallback:
        del planner.held.slots._free[4:]
    plan = planner.plan()
    assert plan is not None
    assert plan.requests[1] is request
    return plan, request


def drawn(plan: Plan, length: int) -> list[float]:
    """What the sampling row uses when it truly stands at `length`."""
    batch = pack(LAYOUTS[plan.mode], plan.rows)
    taken = ("input_ids", "from_relay", "req_pool_indices", "prefix_lens", "uniform")
    lengths = i32(np.zeros(LIMITS.rows))
    lengths[plan.rows[1].row], lengths[plan.rows[0].row] = length, plan.rows[0].prefix_len
    known = {name: batch.view(name) for name in taken} | {"relay": i32(np.zeros(LIMITS.rows)), "seq_lens": lengths}
    given, _ = run("resolve", known, attrs={"proposals": False})
    assert given["prefix_lens"][1] == length
    assert not given["uniform"][0].any(), "a greedy row has none"
    return given["uniform"][1].tolist()


def right(position: int, count: int) -> list[float]:
    """Draws for the tokens at `position` and on, as the numpy reference takes them."""
    return [uniform(SEED, 7, position + i) for i in range(count)]


@pytest.mark.parametrize("mode", [VERIFY, DECODE])
@pytest.mark.parametrize("accepted", range(1, BLOCK + 1))
def test_one_verify_in_flight_whatever_it_accepts(mode: ForwardMode, accepted: int) -> None:
    """Its row stood at the prompt's end; the next launch finds it 1 to 4 positions later."""
    plan, _ = planned(3, fallback=mode is DECODE)
    assert plan.mode is mode
    assert plan.rows[1].prefix_len == PROMPT + 1, "the least"
    length = PROMPT + accepted
    assert drawn(plan, length) == right(length + 1, LAYOUTS[mode].queries)


def test_the_first_verify_stands_where_the_host_thinks() -> None:
    plan, _ = planned(2)
    assert (plan.mode, plan.rows[1].prefix_len) == (VERIFY, PROMPT)
    assert drawn(plan, PROMPT) == right(PROMPT + 1, BLOCK)


def test_a_prefill_brings_the_one_draw_for_the_token_behind_the_prompt() -> None:
    plan, _ = planned(1)
    assert plan.mode is EXTEND
    assert pack(LAYOUTS[EXTEND], plan.rows).view("uniform").tolist() == [[0.0], right(PROMPT, 1)]


def test_every_length_that_a_verify_can_meet_is_within_the_draws_that_came() -> None:
    """As many as its layout has room for: from the least length, a block for the verify in flight and one for itself."""
    plan, request = planned(3)
    assert len(plan.rows[1].uniform) == 2 * BLOCK - 1 <= LAYOUTS[VERIFY].draws
    assert plan.rows[1].uniform == tuple(right(PROMPT + 2, 2 * BLOCK - 1))
    assert (request.cached, request.slack) == (PROMPT + 2, 2 * BLOCK - 2)
