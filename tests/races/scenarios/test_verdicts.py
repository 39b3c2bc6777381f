"""The explorer against a machine that executes everything step by step, and against the checker of event logs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.races.scenarios.machine import verdict
from tests.races.scenarios.random_scenarios import AWAIT, BOUND, BOXES, HOST, fenced, named, programs, threaded
from warfence.races.check.findings import check
from warfence.races.scenarios.explore import explore
from warfence.races.scenarios.log import log
from warfence.races.scenarios.parse import parse
from warfence.races.scenarios.text import text
from warfence.races.sweep.case import Drawn
from warfence.races.sweep.families import FAMILIES

WORST = {"error": "error", "cycle": "cycle", "bad": "bad", "ok": "ok", "over": "ok"}


@pytest.mark.slow
@given(programs([*BOUND, *HOST, *BOXES], 7))
@settings(max_examples=60)
def test_one_trace_decides_as_all_executions_of_one_host_thread_do(written: str) -> None:
    scenario = parse(written)
    assert WORST[explore(scenario).verdict] == verdict(scenario)


@pytest.mark.slow
@given(programs([*BOUND, *HOST, *AWAIT, *BOXES], 7))
@settings(max_examples=60)
def test_awaits_stand_and_reorder_as_in_all_executions(written: str) -> None:
    scenario = parse(written)
    assert WORST[explore(scenario).verdict] == verdict(scenario)


@pytest.mark.slow
@given(threaded(4))
@settings(max_examples=40)
def test_the_orders_of_two_host_threads_that_are_tried_stand_for_all(written: str) -> None:
    scenario = parse(written)
    assert WORST[explore(scenario).verdict] == verdict(scenario)


@pytest.mark.slow
@given(threaded(4, AWAIT))
@settings(max_examples=60, deadline=None)
def test_a_blocked_host_calls_nothing_further_as_in_all_executions(written: str) -> None:
    scenario = parse(written)
    assert WORST[explore(scenario).verdict] == verdict(scenario)


@pytest.mark.slow
@given(named(6))
@settings(max_examples=100, deadline=None)
def test_a_read_that_names_a_launch_sees_it_as_in_all_executions(written: str) -> None:
    scenario = parse(written)
    assert WORST[explore(scenario).verdict] == verdict(scenario)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["named", "copies", "blocks", "blocked"])
def test_a_family_of_the_sweep_has_the_verdicts_of_all_executions(family: str) -> None:
    cases = 150 if isinstance(FAMILIES[family], Drawn) else FAMILIES[family].size(2)
    found = set()
    for index in range(cases):
        scenario = FAMILIES[family].case(index, 2, 7).scenario
        said = verdict(scenario)
        assert WORST[explore(scenario).verdict] == said, text(scenario)
        found.add(said)
    assert {"ok", "bad"} <= found


@pytest.mark.slow
@given(st.one_of(programs([*BOUND, *HOST, *BOXES], 30), fenced(12)))
def test_the_checker_says_the_same_of_each_trace(written: str) -> None:
    outcome = explore(parse(written))
    kinds = check(log(outcome.trace)).kinds()
    if outcome.verdict in ("error", "cycle"):
        return  # a full mailbox, or nothing to receive: the host goes no further, the log ends there
    assert (outcome.verdict == "bad") == ("race" in kinds)
    if outcome.verdict != "bad":
        assert (outcome.verdict == "over") == ("over-fencing" in kinds)


@given(programs([*BOUND, *HOST, *AWAIT], 12))
@settings(max_examples=60)
def test_the_checker_finds_the_same_cycles(written: str) -> None:
    outcome = explore(parse(written))
    assert (outcome.verdict == "cycle") == ("wait-cycle" in check(log(outcome.trace)).kinds())
