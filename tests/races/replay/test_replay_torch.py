"""The catalogue on torch's host lanes: bad programs spoil values, right ones do not, whatever order is forced."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from hypothesis import given, settings

from tests.races.scenarios.random_scenarios import AWAIT, BOUND, BOXES, HOST, programs
from warfence.races.replay.host_cells import NO_BLOCKS, NO_DONATION
from warfence.races.replay.verdicts import replay, replay_fixed
from warfence.races.scenarios.library import catalogue, find
from warfence.races.scenarios.parse import parse
from warfence.races.scenarios.program import Scenario
from warfence_torch.tools.replay import on_cpu

(LANES,) = on_cpu()
WRONG = [one for one in catalogue() if one.fixed_by]


@pytest.mark.parametrize("scenario", catalogue(), ids=lambda one: one.id)
def test_what_the_lanes_show_is_what_is_expected_and_explored(scenario: Scenario) -> None:
    replayed = replay(scenario, LANES)
    assert replayed.explored == scenario.expect
    if replayed.lacks:
        assert replayed.lacks in (NO_BLOCKS, NO_DONATION)
    else:
        assert replayed.verdict == scenario.expect, replayed.shown


@pytest.mark.parametrize("scenario", WRONG, ids=lambda one: one.id)
def test_the_same_order_is_harmless_in_the_fixed_twin(scenario: Scenario) -> None:
    replayed = replay_fixed(scenario, LANES)
    assert replayed.lacks or (replayed.verdict, replayed.explored) == ("ok", "ok"), replayed.shown


@pytest.mark.slow
def test_most_of_the_catalogue_can_be_expressed() -> None:
    lacks = [one.id for one in catalogue() if replay(one, LANES).lacks]
    assert len(lacks) < 0.15 * len(catalogue())


def test_a_spoilt_value_is_named_with_its_writer() -> None:
    (shown,) = replay(find("no-fence"), LANES).shown
    assert shown.said == (
        "'forward reads t[3]' of launch 1 (line 14) saw 4 in t[3] (written by 'schedule recycle: writes t[3]' (line 16)) "
        "instead of 1 (written by 'schedule admit: writes t[3]' (line 11))"
    )


def test_of_lanes_in_a_cycle_it_says_where_each_stands() -> None:
    (shown,) = replay(find("wait-cycle"), LANES).shown
    assert shown.verdict == "cycle"
    assert "copy stands at line" in shown.said
    assert "awaits E record 2" in shown.said


def test_a_wait_that_is_too_strong_is_seen_to_hold_what_nothing_needs_held() -> None:
    (shown,) = replay(find("self-fence"), LANES).shown
    assert shown.verdict == "over"
    assert "stood at a wait while 'forward layers: reads m[3]' of launch 1" in shown.said


@pytest.mark.slow
@settings(max_examples=60)
@given(text=programs(BOUND + HOST + AWAIT + BOXES, 7))
def test_explorer_and_lanes_agree_on_random_programs(text: str) -> None:
    replayed = replay(parse(text, "random"), LANES)
    assert replayed.verdict == replayed.explored, (text, replayed.shown)
