"""Planning while the host knows lengths within bounds only: slots for the upper one, the tail back a step late."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.spec.planning import Loop, PlainTables
from warfence.core.modes import ForwardMode
from warfence.serve.holdings import Limits
from warfence.serve.planner import Planner
from warfence.serve.requests import Phase, Request

LIMITS = Limits(context=24, rows=4, slots=60, swa_slots=48, chunk=5, extend_rows=2, window=6, block=4)
VERIFY, DECODE, EXTEND = ForwardMode.TARGET_VERIFY, ForwardMode.DECODE, ForwardMode.EXTEND

requests_of = st.lists(st.tuples(st.integers(1, 14), st.integers(1, 10)), min_size=1, max_size=9)
limits_of = st.builds(
    lambda block, slots, swa, window: replace(LIMITS, block=block, slots=slots, swa_slots=swa, window=window),
    st.integers(2, 6), st.integers(25, 70), st.integers(12, 50), st.sampled_from([6, None]),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=100)
@given(limits_of, requests_of, st.data())
def test_random_loops_keep_the_invariants(limits: Limits, shapes: list[tuple[int, int]], data: st.DataObject) -> None:
    Loop(limits, shapes, lambda low, high: data.draw(st.integers(low, high))).run()


@pytest.mark.slow
def test_in_such_loops_everything_happens() -> None:
    """Seeded, so that the loops above cannot be empty: fallbacks, retractions, returned slots and whole accepted blocks."""
    happened = dict.fromkeys(("fallbacks", "retractions", "returned", "evictions", "full blocks"), 0)
    for seed, slots, swa in product(range(12), (25, 34, 60), (14, 48)):
        rng = np.random.default_rng(seed)
        shapes = [(int(rng.integers(1, 15)), int(rng.integers(1, 11))) for _ in range(8)]
        loop = Loop(
            replace(LIMITS, slots=slots, swa_slots=swa),
            shapes,
            lambda low, high, rng=rng: int(rng.integers(low, high + 1)),
        )
        loop.run()
        counts, held = loop.planner.counts, loop.planner.held.counts
        seen = (counts.fallbacks, counts.retractions, held.returned, held.evictions, loop.full_blocks)
        happened = {name: happened[name] + n for name, n in zip(happened, seen, strict=True)}
    assert all(happened.values()), happened


# -- one request by hand


def planner(limits: Limits = LIMITS, *requests: Request) -> Planner:
    made = Planner(limits, PlainTables(limits), None)
    for request in requests or (Request(0, (1, 2, 3), 12),):
        made.add(request)
    return made


def modes(made: Planner, count: int) -> list[ForwardMode]:
    plans = [made.plan() for _ in range(count)]
    return [p.mode for p in plans if p is not None]


def test_the_host_knows_the_length_within_bounds_and_each_result_narrows_them() -> None:
    made = planner()
    (request,) = made.waiting
    assert modes(made, 3) == [EXTEND, VERIFY, VERIFY]
    assert (request.cached, request.slack) == (5, 6), "3 of the prompt, at least one from each verify, at most four"
    assert len(request.slots) == 11
    request.learn(1)  # the prefill's
    request.output.append(0)
    request.learn(3, 4)  # the first verify's: three of four
    assert (request.cached, request.slack) == (7, 3)
    made.learned(request)
    assert len(request.slots) == 10, "the verify in flight may yet accept four"
    assert made.held.counts.returned == 1
    request.learn(1, 4)
    made.learned(request)
    assert (request.cached, request.slack, len(request.slots)) == (7, 0, 7)
    assert made.held.counts.returned == 4
    assert made.held.slots.free_count == LIMITS.slots - 1 - 7
    assert sorted(request.swa) == list(range(7))[-len(request.swa) :]


def test_a_returned_slot_goes_to_the_next_who_asks_and_the_row_gets_another() -> None:
    made = planner(LIMITS, Request(0, (1, 2, 3), 12))
    (request,) = made.waiting
    modes(made, 2)
    request.learn(1)
    request.learn(1, 4)
    freed = request.slots[4:]
    made.learned(request)
    other = Request(1, (1, 2), 1)
    made.add(other)
    plan = made.plan()
    assert plan is not None
    assert plan.mode is EXTEND
    assert set(other.slots) <= set(freed)
    verify = made.plan()
    assert verify is not None
    assert set(request.slots).isdisjoint(other.slots)


def test_blocks_end_at_the_context() -> None:
    limits = replace(LIMITS, context=8)
    made = planner(limits, Request(0, (1, 2, 3), 5))
    (request,) = made.waiting
    assert modes(made, 4) == [EXTEND, VERIFY, VERIFY, VERIFY]
    assert len(request.slots) == 8, "the later blocks run over the end, where there is no position to hold a slot for"


def test_a_block_that_finds_no_slots_falls_back_to_plain_decoding_and_is_counted() -> None:
    limits = replace(LIMITS, slots=1 + 8, window=None, context=8)
    made = planner(limits, Request(0, (1, 2), 6), Request(1, (1, 2), 6))
    assert modes(made, 1) == [EXTEND]
    plan = made.plan()
    assert plan is not None
    assert (plan.mode, made.counts.fallbacks) == (DECODE, 1), (
        "eight slots, of which four are taken; blocks need eight more"
    )
    assert [row.extend_len for row in plan.rows] == [1, 1]
    assert made.counts.retractions == 0


def test_a_step_that_finds_no_slot_even_for_one_token_is_no_fallback() -> None:
    loop = Loop(replace(LIMITS, slots=22), [(10, 10)], lambda low, high: 5 if low == 0 else min(high, 2))
    loop.run()
    assert (loop.planner.counts.retractions, loop.decodes) == (1, 1)
    assert loop.planner.counts.fallbacks == loop.decodes


def test_a_retracted_request_waits_for_what_it_has_in_flight_and_starts_over() -> None:
    made = planner(replace(LIMITS, window=None))
    (request,) = made.waiting
    modes(made, 3)
    made._retract(request)
    assert (request.row, request.cached, request.slack, request.slots) == (0, 0, 0, [])
    assert made.plan() is None, "three launches in flight"
    request.learn(1)
    request.learn(4, 4)
    assert (request.cached, request.slack) == (0, 0), "results of positions that it no longer holds move nothing"
    assert made.plan() is None
    request.learn(2, 4)
    request.output += [0] * 7
    plan = made.plan()
    assert plan is not None
    assert (plan.mode, request.cached, request.phase) == (EXTEND, 5, Phase.PREFILL)
