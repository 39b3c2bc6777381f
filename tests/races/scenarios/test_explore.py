"""What explore says besides the verdict: witness, repair, late waits, and how much it had to look at."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.races.scenarios import machine
from tests.races.scenarios.random_scenarios import BOUND, BOXES, HOST, fenced, programs
from warfence.core.errors import InputError
from warfence.races.scenarios import explore as module
from warfence.races.scenarios.explore import explore
from warfence.races.scenarios.library import find
from warfence.races.scenarios.order import Order, conflicts
from warfence.races.scenarios.parse import parse
from warfence.races.scenarios.repair import repair
from warfence.races.scenarios.sentences import interleaving, sentences
from warfence.races.scenarios.text import text

HEADER = "scenario x\ntitle X\ngroup bypass\nsource none\nexpect ok\n\n"
HEADER += "lanes A, B, C\ntable t[8]\npinned pin[4]\nevent e, f\nmailbox box\n"


@pytest.mark.slow
@given(programs([*BOUND, *HOST, *BOXES], 8))
@settings(max_examples=60)
def test_a_witness_is_permitted_and_reverses_the_pair_and_the_repair_holds(written: str) -> None:
    outcome = explore(parse(written))
    if outcome.verdict == "bad":
        witness, steps = outcome.witness, outcome.order.steps
        place = {step: at for at, step in enumerate(witness.order)}
        assert len(place) == len(steps)
        assert all(place[earlier] < place[step.id] for step in steps for earlier in step.after)
        assert witness.first < witness.second
        assert place[witness.second] < place[witness.first]
        assert list(witness.shown) == sorted(witness.shown, key=place.__getitem__)
        repaired = repair(outcome)
        assert repaired is not None
        again = parse(text(repaired.scenario))
        assert again == repaired.scenario
        assert machine.verdict(again) == "ok"


@given(fenced(8))
@settings(max_examples=60)
def test_a_wait_that_binds_as_early_as_was_said_still_orders_every_conflict(written: str) -> None:
    outcome = explore(parse(written))
    for late in outcome.late:
        joins = () if late.needed is None else (late.needed,)
        steps = list(outcome.order.steps)
        wait = steps[late.step]
        steps[wait.id] = replace(wait, joins=joins, after=tuple({*wait.after} - {late.upto} | {*joins}))
        order = Order(steps)
        assert all(order.before(*pair) for pair in conflicts(order))


def test_the_witness_of_a_late_read_is_four_steps() -> None:
    outcome = explore(find("in-graph-late-read"))
    assert interleaving(outcome) == (
        ["forward", "schedule"],
        [
            ["records E (launch 1)", ""],
            ["", "waits E"],
            ["", "writes map[5]"],
            ["store_cache: reads map[5] (launch 1)", ""],
        ],
    )
    said = "\n".join(sentences(outcome, repair(outcome)))
    assert "it waits up to 1 operation too early" in said
    assert "forward records fence behind 'store_cache: reads map[5]' (line 15)" in said
    assert "left out: line 17: schedule waits E" in said


def test_a_program_that_waits_for_nothing_says_so_and_shows_the_two_accesses_alone() -> None:
    outcome = explore(parse(HEADER + "A reads t[0:4]\nB writes t[3]\n"))
    assert interleaving(outcome) == (["A", "B"], [["", "writes t[3]"], ["reads t[0:4]", ""]])
    assert outcome.witness.missing.endswith("it waits for nothing of that lane")


def test_the_host_is_repaired_with_a_sync() -> None:
    repaired = repair(explore(find("host-staging")))
    assert "host syncs fence\nhost writes pin as fill\n" in text(repaired.scenario)
    assert repaired.verdict == "ok"


def test_no_wait_repairs_a_wrong_write_in_the_right_order() -> None:
    outcome = explore(find("stale-static"))
    assert outcome.witness.wrong_write
    assert repair(outcome) is None
    assert "repair: no added wait makes this right" in sentences(outcome, None)


def test_a_late_wait_says_where_it_could_be_and_what_it_costs() -> None:
    said = sentences(explore(find("post-early")), None)
    assert "waits for 2 stages of lane forward in vain: 'layers: reads m[3]', 'logits: reads m[3]'" in said[0]
    assert said[1] == (
        "earlier: record right behind 'forward page_table: reads t[3], writes m[3]' (line 13), 2 stages before"
    )


def test_a_wait_that_no_conflict_needs_is_to_be_left_out() -> None:
    outcome = explore(find("drain-each-step"))
    assert outcome.late[0].needed is None
    assert sentences(outcome, None)[-1] == "earlier: no conflict needs this wait; leave it out"


def test_a_cycle_names_each_lane_and_where_it_stands() -> None:
    outcome = explore(find("wait-cycle"))
    assert "copy stands at line 17: awaits E record 2; forward stands at line 20: waits copied" in outcome.reason


def test_a_call_behind_a_host_that_stands_is_never_made() -> None:
    body = "A awaits e record 1\nhost syncs lane A\nhost publishes e to box\nhost publishes e to box\n"
    assert explore(parse(HEADER + body)).verdict == "cycle"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("double-donation", "the handle 'old' was donated before; it is dead"),
        ("dead-handle", "the handle 'old' was donated before; it is dead"),
        ("use-after-free", "the block 'x' is used after its owner let go of it"),
        ("two-publishers", "mailbox 'target' holds verified still; take or clear it before extended"),
    ],
)
def test_what_the_runtime_refuses_is_told(name: str, reason: str) -> None:
    assert explore(find(name)).reason.endswith(reason)


def test_a_block_in_use_is_not_handed_out() -> None:
    outcome = explore(parse(HEADER + "A allocates x[4]\nA allocates y[4] at x\n"))
    assert (outcome.verdict, "the block 'x' is in use" in outcome.reason) == ("error", True)


def test_a_hold_ends_with_its_executable() -> None:
    whole, cut = (explore(find(name)).order for name in ("donation-hold", "donation-hold-cut"))
    write, layers = 2, 1
    assert whole.before(layers, write)
    assert not cut.before(layers, write)
    assert cut.before(0, write)


def test_a_viewed_array_is_copied_and_said_to_be() -> None:
    outcome = explore(find("donation-refused"))
    assert outcome.trace.copies == [1]
    assert "is safe by copy: a live view keeps the old memory" in sentences(outcome, None)[0]


def test_an_event_without_a_record_is_noted() -> None:
    assert "note: 'schedule waits e' (line 16)" in sentences(explore(find("never-recorded")), None)[-1]


def test_every_branch_is_tried_in_every_turn() -> None:
    body = "repeat i in 1..3 {\nchoose {\nA reads t[0]\n} or {\nA reads t[1]\n} or {\n}\n}\n"
    assert explore(parse(HEADER + body)).traces == 27


def test_host_threads_that_share_nothing_have_one_order_and_those_that_do_have_all() -> None:
    calls = "repeat i in 1..4 {{\n{}\n}}\n"
    apart = calls.format("A reads t[0]") + "thread other {\n" + calls.format("B reads t[1]") + "}\n"
    shared = calls.format("A reads t[0]") + "thread other {\n" + calls.format("A reads t[1]") + "}\n"
    assert explore(parse(HEADER + apart)).traces == 1
    assert explore(parse(HEADER + shared)).traces == 70  # 8 choose 4


def test_a_long_program_behind_a_hand_over_has_one_order() -> None:
    calls = "repeat i in 1..1500 {{\nA {} t[{}]\n}}\n"
    body = calls.format("reads", 0) + "A records e\nhost publishes e to box\n"
    body += "thread other {\nhost receives box\nB waits e\nB writes t[0]\n" + calls.format("writes", 1) + "}\n"
    outcome = explore(parse(HEADER + body))
    assert (outcome.verdict, outcome.traces) == ("ok", 1)


def test_a_thread_that_receives_what_never_comes_stands() -> None:
    outcome = explore(parse(HEADER + "A reads t[0]\nthread other {\nhost receives box\nB writes t[0]\n}\n"))
    assert (outcome.verdict, outcome.traces) == ("cycle", 1)
    assert "other stands at line 14: receives box" in outcome.reason


def test_the_name_of_a_block_that_was_handed_on_is_dead() -> None:
    body = "A allocates x[4]\nhost frees x\nA allocates y[4] at x\nA writes x\n"
    assert explore(parse(HEADER + body)).verdict == "error"


def test_the_result_of_a_donation_is_there_when_its_executable_is_done() -> None:
    body = "array h[4]\nlaunch 1 on A {\ndonates h[1]\nwrites t[0]\n}\nB reads h[1], writes t[0]\n"
    assert explore(parse(HEADER + body)).verdict == "ok"


def test_too_many_orders_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TRACES", 8)
    body = "repeat i in 1..4 {\nchoose {\nA reads t[0]\n} or {\nA reads t[1]\n}\n}\n"
    with pytest.raises(InputError, match="more than 8 orders of host calls; take smaller parameters"):
        explore(parse(HEADER + body))


def test_pairs_count_neighbours_and_not_the_square_of_the_length() -> None:
    scenario = find("ring-stream-wait")
    counts = [len(conflicts(explore(scenario, {"N": steps}).order)) for steps in (10, 20, 40)]
    assert counts == [19, 39, 79]


def test_a_parameter_changes_the_verdict() -> None:
    assert explore(find("staging-ring"), {"D": 4}).verdict == "ok"
