"""The policy table and what must hold for every query."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from warfence.core.modes import ForwardMode, SharedReadEnds, WarReadDonePolicy
from warfence.core.policy import RULES, Query, decide, is_early
from warfence.parity.history import RULE_SETS

M, R, P = ForwardMode, SharedReadEnds, WarReadDonePolicy
PREFILL = {"prefill_enabled": True}

TABLE = [
    # mode, declared, flags, policy, rule
    (M.DECODE, R.IN_GRAPH, {"marker": True}, P.IN_GRAPH, "declared-in-graph"),
    (M.DECODE, R.PRE_REPLAY, {}, P.PRE_REPLAY, "declared-pre"),
    (M.TARGET_VERIFY, R.POST_REPLAY, {"verify_read_done": True, "marker": True}, P.POST_REPLAY, "declared-post"),
    (M.TARGET_VERIFY, R.PRE_REPLAY, {}, P.NONE, "verify-not-last-reader"),
    (M.TARGET_VERIFY, R.IN_GRAPH, {"verify_read_done": True, "marker": True}, P.IN_GRAPH, "declared-in-graph"),
    (M.TARGET_VERIFY, R.PRE_REPLAY, {"verify_read_done": True}, P.PRE_REPLAY, "declared-pre"),
    (M.EXTEND, R.IN_GRAPH, {"marker": True}, P.NONE, "mode-not-covered"),
    (M.EXTEND, R.PRE_REPLAY, PREFILL, P.PRE_REPLAY, "declared-pre"),
    (M.EXTEND, R.PRE_REPLAY, {}, P.NONE, "mode-not-covered"),
    (M.MIXED, R.PRE_REPLAY, PREFILL, P.NONE, "mode-not-covered"),
    (M.TARGET_VERIFY, R.PRE_REPLAY, PREFILL, P.NONE, "verify-not-last-reader"),
    (M.EXTEND, R.PRE_REPLAY, PREFILL | {"speculative": True}, P.NONE, "mode-not-covered"),
    (M.EXTEND, R.IN_GRAPH, PREFILL | {"marker": True}, P.NONE, "prefill-reads-on"),
    (M.EXTEND, R.UNKNOWN, PREFILL, P.NONE, "prefill-reads-on"),
    (M.DECODE, R.IN_GRAPH, {"marker": False}, P.POST_REPLAY, "in-graph-without-marker"),
    (M.EXTEND, R.PRE_REPLAY, PREFILL | {"speculative": True, "prefill_read_done": True}, P.PRE_REPLAY, "declared-pre"),
    (M.DECODE, R.UNKNOWN, {"marker": True}, P.NONE, "unknown"),
    (M.DECODE, R.POST_REPLAY, {"marker": True}, P.POST_REPLAY, "declared-post"),
    (M.IDLE, R.PRE_REPLAY, {}, P.NONE, "mode-not-covered"),
    (M.PREBUILT, R.PRE_REPLAY, {"marker": True}, P.NONE, "prebuilt"),
    (M.SPLIT_PREFILL, R.PRE_REPLAY, PREFILL, P.NONE, "split-prefill"),
    (M.DLLM_EXTEND, R.IN_GRAPH, {"marker": True}, P.NONE, "dllm-extend"),
    (M.DRAFT_EXTEND, R.PRE_REPLAY, {"verify_read_done": True}, P.NONE, "mode-not-covered"),
    (M.DRAFT_EXTEND, R.PRE_REPLAY, {"draft_read_done": True}, P.PRE_REPLAY, "declared-pre"),
    (M.DRAFT_EXTEND, R.IN_GRAPH, {"draft_read_done": True, "marker": True}, P.IN_GRAPH, "declared-in-graph"),
    (M.DRAFT_EXTEND, R.IN_GRAPH, {"draft_read_done": True}, P.POST_REPLAY, "in-graph-without-marker"),
    (M.DRAFT_EXTEND, R.POST_REPLAY, {"draft_read_done": True, "marker": True}, P.POST_REPLAY, "declared-post"),
    (M.DRAFT_EXTEND, R.UNKNOWN, {"draft_read_done": True, "marker": True}, P.NONE, "unknown"),
    (M.TARGET_VERIFY, R.PRE_REPLAY, {"draft_read_done": True}, P.NONE, "verify-not-last-reader"),
    (M.EXTEND, R.PRE_REPLAY, {"draft_read_done": True, "speculative": True}, P.NONE, "mode-not-covered"),
    (M.EXTEND, R.PRE_REPLAY, {"speculative": True, "prefill_read_done": True}, P.NONE, "mode-not-covered"),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "declared", "flags", "policy", "rule"), TABLE)
def test_case(mode: M, declared: R, flags: dict[str, bool], policy: P, rule: str) -> None:
    decision = decide(Query(mode, declared, **flags))
    assert (decision.policy, decision.rule) == (policy, rule)
    assert decision.reason


def every_query() -> list[Query]:
    flags = itertools.product((False, True), repeat=7)
    return [Query(m, d, *f) for m, d, f in itertools.product(M, R, flags)]


def test_no_answer_is_earlier_than_declared() -> None:
    for q in every_query():
        assert not is_early(q, decide(q).policy), q


def test_in_graph_is_answered_only_with_a_marker() -> None:
    assert all(q.marker for q in every_query() if decide(q).policy is P.IN_GRAPH)


def test_a_marker_never_makes_the_answer_earlier_than_without_where_reads_end_later() -> None:
    for q in every_query():
        if q.declared is not R.IN_GRAPH:
            assert decide(q).policy is decide(replace(q, marker=False)).policy


def test_every_rule_fires_for_some_query() -> None:
    assert {decide(q).rule for q in every_query()} == {r.name for r in RULES}


ANY, NO, YES = (False, True), (False,), (True,)
IN_GRAPH_AND_LATER, LATER = (R.IN_GRAPH, R.POST_REPLAY, R.UNKNOWN), (R.POST_REPLAY, R.UNKNOWN)
DRAFT = ((M.DRAFT_EXTEND,), IN_GRAPH_AND_LATER, ANY, ANY, ANY, P.PRE_REPLAY)
ASSUMED = ((M.DECODE,), IN_GRAPH_AND_LATER, ANY, ANY, ANY, P.PRE_REPLAY)
SEGMENTED = ((M.TARGET_VERIFY,), (R.UNKNOWN,), ANY, YES, YES, P.POST_REPLAY)
FALLS_EARLIER = [((M.DECODE,), (R.IN_GRAPH,), NO, ANY, ANY, P.PRE_REPLAY)]
UNIFIED = [DRAFT, *FALLS_EARLIER, ((M.TARGET_VERIFY,), (R.IN_GRAPH,), NO, YES, ANY, P.PRE_REPLAY)]
# Which launches a public state releases before the declared reads end: modes, declared ends, marker, whether verify is the
# last reader, whether the forward is segmented, and what it answers there. A draft extend only where there is one.
UNSOUND = {
    "28363": [DRAFT, ASSUMED],
    "29541": [DRAFT, ASSUMED, ((M.TARGET_VERIFY,), IN_GRAPH_AND_LATER, ANY, YES, ANY, P.PRE_REPLAY)],
    "before-33587": [
        DRAFT, ASSUMED, SEGMENTED, ((M.TARGET_VERIFY,), IN_GRAPH_AND_LATER, ANY, YES, NO, P.PRE_REPLAY),
    ],
    "33587": [
        DRAFT, SEGMENTED,
        ((M.DECODE,), IN_GRAPH_AND_LATER, NO, ANY, ANY, P.PRE_REPLAY),
        ((M.DECODE,), LATER, YES, ANY, ANY, P.IN_GRAPH),
        ((M.TARGET_VERIFY,), IN_GRAPH_AND_LATER, NO, YES, NO, P.PRE_REPLAY),
        ((M.TARGET_VERIFY,), LATER, YES, YES, NO, P.IN_GRAPH),
    ],
    "34052": UNIFIED,
    "34916": UNIFIED,
    "34982": UNIFIED,
    "35059": [
        DRAFT, *FALLS_EARLIER, ((M.TARGET_VERIFY, M.IDLE), (R.IN_GRAPH,), NO, ANY, ANY, P.PRE_REPLAY),
    ],
    "warfence": [],
}  # fmt: skip


@pytest.mark.parametrize("name", RULE_SETS)
def test_each_set_is_unsound_exactly_there(name: str) -> None:
    expected = {
        (mode, declared, marker, last, segmented): policy
        for modes, ends, markers, lasts, segments, policy in UNSOUND[name]
        for mode, declared, marker, last, segmented in itertools.product(modes, ends, markers, lasts, segments)
    }
    for q in every_query():
        policy = decide(q, RULE_SETS[name]).policy
        cell = (q.mode, q.declared, q.marker, q.verify_read_done, q.segmented)
        there = cell in expected and (q.mode is not M.DRAFT_EXTEND or q.draft_read_done)
        assert is_early(q, policy) is there, q
        if there:
            assert policy is expected[cell], q


@pytest.mark.parametrize(
    ("policy", "declared", "early"),
    [
        (P.PRE_REPLAY, R.PRE_REPLAY, False), (P.PRE_REPLAY, R.IN_GRAPH, True), (P.IN_GRAPH, R.IN_GRAPH, False),
        (P.IN_GRAPH, R.POST_REPLAY, True), (P.POST_REPLAY, R.POST_REPLAY, False), (P.POST_REPLAY, R.UNKNOWN, True),
        (P.NONE, R.UNKNOWN, False),
    ],
)  # fmt: skip
def test_a_ticket_is_early_if_it_comes_before_the_declared_end(policy: P, declared: R, early: bool) -> None:
    assert is_early(Query(M.DECODE, declared), policy) is early


def test_draft_extend_publishes_for_an_algorithm_that_says_so_and_follows_its_own_reads() -> None:
    for q in every_query():
        if q.mode is M.DRAFT_EXTEND:
            policy = decide(q).policy
            assert (policy is P.NONE) is (not q.draft_read_done or q.declared is R.UNKNOWN)
            assert policy is decide(replace(q, verify_read_done=True, prefill_enabled=True)).policy


def test_the_last_state_has_no_gate_of_the_algorithm() -> None:
    q = Query(M.TARGET_VERIFY, R.POST_REPLAY, segmented=True)
    answers = {name: decide(q, rules).policy for name, rules in RULE_SETS.items()}
    assert {name for name, policy in answers.items() if policy is not P.NONE} == {"35059"}


def test_a_rule_set_without_an_answer_publishes_nothing() -> None:
    assert decide(Query(M.DECODE, R.PRE_REPLAY), ()).policy is P.NONE
