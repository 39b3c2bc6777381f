"""Many choices: what is looked at in pairs, against every combination; and what is refused before it is unrolled."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.races.scenarios.random_scenarios import BOUND, BOXES, HOST
from warfence.core.errors import InputError
from warfence.races.scenarios import choices
from warfence.races.scenarios.explore import _judge, explore
from warfence.races.scenarios.interleave import orders
from warfence.races.scenarios.operations import Memories, Threads, Unroller
from warfence.races.scenarios.parse import parse
from warfence.races.scenarios.program import Scenario

HEADER = "scenario x\ntitle X\ngroup bypass\nsource none\nexpect ok\n\n"
HEADER += "lanes A, B, C\npinned t[32], p[4]\nevent e, f\nmailbox box\n"
TOUCH = st.builds("{} {} t[{}]".format, st.sampled_from("ABC"), st.sampled_from(["reads", "writes"]), st.integers(0, 1))
PLAIN = st.builds("choose {{\n{}\n}} or {{\n{}\n}}".format, TOUCH, TOUCH | st.just(""))
WAITING = st.builds("choose {{\n{}\n}} or {{\n{}\n}}".format, st.one_of(BOUND), TOUCH)
PROGRAMS = st.lists(st.one_of(PLAIN, PLAIN, WAITING, *BOUND, *HOST, *BOXES), min_size=3, max_size=9).map("\n".join)


def choose(*branches: str) -> str:
    return "choose {\n" + "\n} or {\n".join(branches) + "\n}\n"


def reads(count: int) -> str:
    return "".join(choose(f"A reads t[{i}]", f"A reads t[{i}]\nA reads t[0]") for i in range(count))


@pytest.mark.parametrize("count", [15, 25])
def test_choices_that_no_conflict_spans_are_not_multiplied(count: int) -> None:
    outcome = explore(parse(HEADER + reads(count) + "B waits lane A\nB writes t\n"))
    assert (outcome.verdict, outcome.traces <= 20) == ("ok", True)


def test_a_race_between_branches_of_two_choices_of_many_is_found() -> None:
    body = reads(7) + choose("A reads t[30]", "A reads t[31]") + reads(7) + choose("B writes t[29]", "B writes t[30]")
    outcome = explore(parse(HEADER + body))
    assert outcome.verdict == "bad"
    pair = [outcome.order.steps[one].title for one in (outcome.witness.first, outcome.witness.second)]
    assert pair == ["reads t[30]", "writes t[30]"]


def test_a_wait_that_may_be_too_strong_in_all_of_too_many_combinations_is_not_judged() -> None:
    with pytest.raises(InputError, match="too strong: that has to be so in all 32768 combinations of its choices"):
        explore(parse(HEADER + reads(15) + "B waits lane A\nB writes p\n"))


def test_a_wait_that_is_too_strong_in_every_one_of_some_hundred_combinations_is_over() -> None:
    outcome = explore(parse(HEADER + reads(9) + "B waits lane A\nB writes p\n"))
    assert (outcome.verdict, outcome.traces) == ("over", 512)


def test_choices_that_wait_are_multiplied_and_refused_at_once_with_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = "".join(choose("A records e", "B waits e") for _ in range(20))
    begun = []
    monkeypatch.setattr(choices, "Unroller", lambda *given: begun.append(given) or Unroller(*given))
    with pytest.raises(
        InputError, match="has 1048576 combinations of choices that have to be looked at, and at most 20000"
    ):
        explore(parse(HEADER + waits))
    assert len(begun) == 2  # what the branches are, and no combination


@pytest.mark.parametrize(
    ("loops", "number"),
    [
        ("repeat i in 0..1000000000 {\n}\n", "1000000001"),
        ("repeat i in 1..60000 {\nrepeat j in 1..60000 {\n}\n}\n", "120000"),
    ],
)
def test_loops_without_end_are_refused_at_once_with_their_turns(loops: str, number: str) -> None:
    with pytest.raises(InputError, match=rf"line \d+: {number} turns of loops, and at most 100000 are; take smaller"):
        explore(parse(HEADER + loops))


@pytest.mark.slow
@given(PROGRAMS)
@settings(max_examples=150, deadline=None)
def test_pairs_of_branches_decide_as_every_combination_does(body: str) -> None:
    scenario = parse(HEADER + body + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choices, "FEW", 1)
        apart = {_verdict(scenario, *one) for one in choices.variants(scenario)}
    assert apart - {"ok"} == {_verdict(scenario, *one) for one in choices.variants(scenario, apart=False)} - {"ok"}


def _verdict(scenario: Scenario, threads: Threads, memories: Memories) -> str:
    (ops,) = orders(threads, memories)  # one host thread
    return _judge(scenario, ops, memories, []).verdict
