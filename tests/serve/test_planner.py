"""Pools and planner: nobody shares a row or slot, the tables say what the host thinks, everything is given back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warfence.core.errors import CapacityError, InputError
from warfence.core.modes import ForwardMode
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.serve.planner import Limits, Plan, Planner
from warfence.serve.pools import Pool
from warfence.serve.requests import Phase, Request

LIMITS = Limits(context=24, rows=4, slots=30, swa_slots=16, chunk=5, extend_rows=2, window=6)


class PlainTables:
    """Tables that are written at once, in numpy."""

    def __init__(self, limits: Limits) -> None:
        self.arrays = {
            REQ_TO_TOKEN: np.zeros((limits.rows, limits.context), np.int32),
            FULL_TO_SWA: np.zeros((1, limits.slots), np.int32),
        }

    def write(self, lane: object, name: str, cells: np.ndarray, values: np.ndarray) -> None:
        assert len(set(cells.tolist())) == len(cells), "cells of one scatter are distinct"
        self.arrays[name].reshape(-1)[cells] = values


def test_pool_gives_the_last_freed_first_and_counts_reuse() -> None:
    pool = Pool("p", 4)
    assert [pool.take(), pool.take()] == [1, 2]
    pool.give(1)
    assert (pool.take(), pool.recycled) == (1, 1)
    assert pool.take() == 3
    with pytest.raises(CapacityError, match="pool 'p' has no free index left of 3"):
        pool.take()
    pool.give(2)
    with pytest.raises(CapacityError, match="index 2 was returned but nobody owns it"):
        pool.give(2)


@pytest.mark.parametrize(
    ("prompt", "new", "message"),
    [((), 4, "the prompt is empty"), ((1,) * 20, 10, "20 prompt tokens . 10 new tokens = 30, but context and KV pool hold 24")],
)  # fmt: skip
def test_requests_that_can_never_be_served_are_refused(prompt: tuple[int, ...], new: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Planner(LIMITS, PlainTables(LIMITS), None).add(Request(0, prompt, new))


def check(planner: Planner, plan: Plan, tables: PlainTables) -> None:
    """What a forward of this plan would read is what the host thinks."""
    owned = [s for r in planner.running for s in r.slots]
    swa = [s for r in planner.running for s in r.swa.values()]
    assert len(set(owned)) == len(owned), "a slot has one owner"
    assert 0 not in owned, "slot 0 is reserved"
    assert len(set(swa)) == len(swa)
    for request, row in zip(plan.requests, plan.rows, strict=True):
        end = row.prefix_len + len(row.out_cache_loc)
        assert tables.arrays[REQ_TO_TOKEN][row.row, :end].tolist() == request.slots[:end]
        assert row.out_cache_loc == tuple(request.slots[row.prefix_len : end])
        for position in range(max(0, row.prefix_len - LIMITS.window + 1), end):
            mapped = tables.arrays[FULL_TO_SWA][0, request.slots[position]]
            assert mapped == request.swa[position] != 0, "everything in the window is mapped"


requests_of = st.lists(st.tuples(st.integers(1, 14), st.integers(1, 9)), min_size=1, max_size=9)


@settings(max_examples=150)
@given(requests_of, st.data())
def test_random_loops_keep_the_invariants(shapes: list[tuple[int, int]], data: st.DataObject) -> None:
    """A loop with results one step late, some requests ending early, as an end-of-text token would do it."""
    tables = PlainTables(LIMITS)
    planner = Planner(LIMITS, tables, None)
    requests = [Request(i, tuple(range(n)), new) for i, (n, new) in enumerate(shapes)]
    for request in requests:
        planner.add(request)
    previous: Plan | None = None
    for _ in range(2000):
        if not planner.busy and previous is None:
            break
        plan = planner.plan()
        if plan is not None:
            check(planner, plan, tables)
            assert plan.mode in (ForwardMode.DECODE, ForwardMode.EXTEND)
        for request, emits in zip(previous.requests, previous.emits, strict=True) if previous else ():
            if not emits or request.stopped:
                continue
            request.learn(1)
            request.output.append(0)
            if data.draw(st.integers(0, 9)) == 0:
                request.stopped = True
                request.stop()
                planner.release(request)
        planner.flush()
        previous = plan
    else:
        pytest.fail("the loop did not come to an end")
    assert all(r.phase is Phase.DONE for r in requests)
    assert all(r.stopped or len(r.output) == r.max_new_tokens for r in requests)
    for pool in (planner.held.rows, planner.held.slots, planner.held.swa_slots):
        assert pool.free_count == pool.size - 1, f"{pool.name}: everything was given back"
    assert not tables.arrays[FULL_TO_SWA].any(), "no map entry outlives its request"


def test_a_row_is_reused_in_the_plan_right_after_the_last_launch() -> None:
    """The host need not know the last token to know that it is the last: this is what makes the fence matter."""
    limits = Limits(context=24, rows=2, slots=30, swa_slots=16, chunk=5, extend_rows=1, window=6)
    planner = Planner(limits, PlainTables(limits), None)
    first, second = Request(0, (1, 2), 1), Request(1, (3,), 1)
    planner.add(first)
    planner.add(second)
    planner.plan()
    row = first.row
    plan = planner.plan()  # the result of the first launch is not known yet
    assert first.output == []
    assert first.phase is Phase.DONE
    assert plan is not None
    assert plan.requests == (second,)
    assert second.row == row


def test_while_nothing_is_in_flight_something_is_planned() -> None:
    """A plan of nothing makes the loop wait for the next arrival, however far away that is."""
    limits = Limits(context=21, rows=5, slots=19, swa_slots=34, chunk=3, extend_rows=2, window=6)
    planner = Planner(limits, PlainTables(limits), None)
    for i, (prompt, new) in enumerate([(10, 8), (13, 2), (8, 10), (7, 2)]):
        planner.add(Request(i, (1,) * prompt, new))
    for _ in range(3):  # inner chunks only: two requests then hold every slot, the two behind them hold none
        assert planner.plan() is not None
        assert not any(request.flying for request in planner.running)
    plan = planner.plan()
    assert plan is not None
    assert [request.id for request in plan.requests] == [0], "the youngest gave way until one could go on"
