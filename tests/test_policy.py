"""The policy table (cases 2-10, 12, 16, 17) and what must hold for every query."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from warfence.modes import ForwardMode, SharedReadEnds, WarReadDonePolicy
from warfence.policy import RULE_SETS, RULES, Query, decide, is_early

M, R, P = ForwardMode, SharedReadEnds, WarReadDonePolicy
PREFILL = {"prefill_enabled": True}

TABLE = [
    # case, mode, declared, flags, policy, rule
    (2, M.DECODE, R.IN_GRAPH, {"marker": True}, P.IN_GRAPH, "declared-in-graph"),
    (3, M.DECODE, R.PRE_REPLAY, {}, P.PRE_REPLAY, "declared-pre"),
    (4, M.TARGET_VERIFY, R.POST_REPLAY, {"verify_read_done": True, "marker": True}, P.POST_REPLAY, "declared-post"),
    (5, M.TARGET_VERIFY, R.PRE_REPLAY, {}, P.NONE, "verify-not-last-reader"),
    (6, M.TARGET_VERIFY, R.IN_GRAPH, {"verify_read_done": True, "marker": True}, P.IN_GRAPH, "declared-in-graph"),
    (6, M.TARGET_VERIFY, R.PRE_REPLAY, {"verify_read_done": True}, P.PRE_REPLAY, "declared-pre"),
    (7, M.EXTEND, R.IN_GRAPH, {"marker": True}, P.NONE, "mode-not-covered"),
    (8, M.EXTEND, R.PRE_REPLAY, PREFILL, P.PRE_REPLAY, "declared-pre"),
    (9, M.EXTEND, R.PRE_REPLAY, {}, P.NONE, "mode-not-covered"),
    (10, M.MIXED, R.PRE_REPLAY, PREFILL, P.NONE, "mode-not-covered"),
    (10, M.TARGET_VERIFY, R.PRE_REPLAY, PREFILL, P.NONE, "verify-not-last-reader"),
    (10, M.EXTEND, R.PRE_REPLAY, PREFILL | {"speculative": True}, P.NONE, "mode-not-covered"),
    (10, M.EXTEND, R.IN_GRAPH, PREFILL | {"marker": True}, P.NONE, "prefill-reads-on"),
    (10, M.EXTEND, R.UNKNOWN, PREFILL, P.NONE, "prefill-reads-on"),
    (16, M.DECODE, R.IN_GRAPH, {"marker": False}, P.POST_REPLAY, "in-graph-without-marker"),
    (22, M.EXTEND, R.PRE_REPLAY, PREFILL | {"speculative": True, "prefill_read_done": True}, P.PRE_REPLAY, "declared-pre"),
    (0, M.DECODE, R.UNKNOWN, {"marker": True}, P.NONE, "unknown"),
    (0, M.DECODE, R.POST_REPLAY, {"marker": True}, P.POST_REPLAY, "declared-post"),
    (0, M.IDLE, R.PRE_REPLAY, {}, P.NONE, "mode-not-covered"),
    (0, M.DRAFT_EXTEND, R.PRE_REPLAY, {"verify_read_done": True}, P.NONE, "mode-not-covered"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "mode", "declared", "flags", "policy", "rule"), TABLE)
def test_case(case: int, mode: M, declared: R, flags: dict[str, bool], policy: P, rule: str) -> None:
    decision = decide(Query(mode, declared, **flags))
    assert (decision.policy, decision.rule) == (policy, rule)
    assert decision.reason


def every_query() -> list[Query]:
    flags = itertools.product((False, True), repeat=6)
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


@pytest.mark.parametrize(("name", "unsound"), [("warfence", False), ("first-published", True), ("unified", True)])
def test_which_rule_sets_answer_earlier_than_declared(name: str, unsound: bool) -> None:
    early = [q for q in every_query() if is_early(q, decide(q, RULE_SETS[name]).policy)]
    assert bool(early) is unsound
    if unsound:  # the corner that both share: in-graph without a marker falls to PRE_REPLAY
        assert Query(M.DECODE, R.IN_GRAPH) in early


def test_the_historical_sets_ask_in_a_different_order() -> None:
    q = Query(M.TARGET_VERIFY, R.POST_REPLAY, segmented=True)
    assert decide(q, RULE_SETS["first-published"]).policy is P.POST_REPLAY, "backend before algorithm"
    assert decide(q, RULE_SETS["unified"]).policy is P.NONE, "algorithm before backend"


def test_a_rule_set_without_an_answer_publishes_nothing() -> None:
    assert decide(Query(M.DECODE, R.PRE_REPLAY), ()).policy is P.NONE
