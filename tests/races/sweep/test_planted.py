"""A sweep with a wrong judge in it has to fail, and to shrink what it shows to a few lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warfence.races.check.log_file import Log
from warfence.races.scenarios.explore import explore
from warfence.races.scenarios.program import Remark
from warfence.races.sweep import judges
from warfence.races.sweep.families import FAMILIES
from warfence.races.sweep.options import SweepOptions
from warfence.races.sweep.ring import RING
from warfence.races.sweep.tally import failures, shrunk
from warfence.races.sweep.work import judge_chunk, judges_of


class Blind:
    """Lanes on which nothing ever goes wrong."""

    name = "blind/cpu"

    def verdict(self, outcome) -> str:
        return "ok"


@pytest.fixture(autouse=True)
def _no_lanes_are_kept():
    yield
    judges_of.cache_clear()


def swept(family: str, limit: int, backends: tuple[str, ...] = ()):
    """(failures, shrunk programs) of some cases."""
    plan = SweepOptions((family,), 3, limit, 0, backends)
    found = failures(judge_chunk(plan, chunk) for chunk in plan.chunks())
    return found, shrunk(plan, found)


def sentences(scenario) -> int:
    """Statements of the body without declarations."""
    return sum(type(one).__name__ != "Declare" and not isinstance(one, Remark) for one in scenario.body)


@pytest.mark.slow
def test_an_explorer_that_calls_everything_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges, "explore", lambda scenario: replace(explore(scenario), verdict="ok"))
    found, programs = swept("random", 12)
    assert found
    assert all(said["explorer"] == "ok" != said["checker"] for _, _, said in found)
    assert sentences(programs[0]) == 2, "two accesses that race"
    assert programs[0].title.endswith("shrunk: explorer says ok and checker says bad")


@pytest.mark.slow
def test_a_checker_that_does_not_see_one_kind_of_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    check = judges.check
    seen = lambda log: Log(tuple(one for one in log.events if one.kind != "wait_lane" or one.lane != "A"))  # noqa: E731
    monkeypatch.setattr(judges, "check", lambda log: check(seen(log)))
    _, programs = swept("fenced", 12)
    assert any(one.title.endswith("explorer says ok and checker says bad") for one in programs)
    for one in programs:
        assert sentences(one) <= 5, "accesses, the wait that was not seen, and one that is too strong"


def test_wrong_arithmetic_is_shown_at_the_simplest_place(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(RING, oracle=lambda place: "ok" if place.steps > 1 else RING.oracle(place))
    monkeypatch.setitem(FAMILIES, "ring", wrong)
    _, programs = swept("ring", 30)
    assert "slots 1, events 1, recorded behind tail, lag 1, steps 2" in programs[0].title


def test_lanes_that_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warfence.races.sweep.work.lane_judges", lambda backend, device: [Blind()])
    found, programs = swept("short", 60, ("blind",))
    assert {said["lanes of blind/cpu"] for _, _, said in found} == {"ok"}
    assert all(said["explorer"] in ("bad", "cycle") for _, _, said in found)
    assert sentences(programs[0]) <= 2


def test_a_judge_that_breaks_down_names_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(log):
        raise KeyError("gone")

    monkeypatch.setattr(judges, "check", broken)
    with pytest.raises(KeyError) as caught:
        swept("random", 1)
    assert caught.value.__notes__ == ["This was case 0 of family 'random', seed 0."]


def test_lanes_cannot_tell_too_strong_from_right() -> None:
    said = {"explorer": "over", "checker": "ok", "lanes of x": "ok"}
    assert judges.agree(said, "explorer", "lanes of x")
    assert judges.disagreement(said) == ("explorer", "checker")
    assert not judges.agree({**said, "lanes of x": "bad"}, "explorer", "lanes of x")
