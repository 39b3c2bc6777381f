"""Every rule set of a public state against the table of what its code published, cell for cell."""

from __future__ import annotations

import csv
import itertools
from dataclasses import fields
from pathlib import Path

import pytest

import warfence
from warfence.core.modes import ForwardMode, SharedReadEnds, WarReadDonePolicy
from warfence.core.policy import RULES, Query, decide, is_early
from warfence.parity.history import PROPOSALS, RULE_SETS, STATES, State

TABLE = list(csv.DictReader(Path(__file__).with_name("decisions.csv").read_text(encoding="utf-8").splitlines()))
FLAGS = [f.name for f in fields(Query) if f.name not in ("mode", "declared")]
MODES = list(dict.fromkeys(ForwardMode[row["mode"]] for row in TABLE))
COMMITS = [(state, commit) for state in STATES for commit in state.commits]


def every_query() -> list[Query]:
    flags = itertools.product((False, True), repeat=len(FLAGS))
    return [Query(m, d, *f) for m, d, f in itertools.product(MODES, SharedReadEnds, flags)]


def matches(row: dict[str, str], q: Query) -> bool:
    seen = {"mode": q.mode.name, "declared": q.declared.name} | {f: str(int(getattr(q, f))) for f in FLAGS}
    return all(row[name] in ("*", value) for name, value in seen.items())


def test_the_table_has_every_commit_of_a_state_and_no_other() -> None:
    assert len(TABLE) == 171
    assert {row["commit"] for row in TABLE} == {commit for _, commit in COMMITS}


@pytest.mark.parametrize(("state", "commit"), COMMITS, ids=[f"{s.name}, {c}" for s, c in COMMITS])
def test_a_rule_set_answers_as_its_state_did(state: State, commit: str) -> None:
    rows = [row for row in TABLE if row["commit"] == commit]
    seen = dict.fromkeys(range(len(rows)), 0)
    for q in every_query():
        (at,) = [i for i, row in enumerate(rows) if matches(row, q)]
        seen[at] += 1
        assert decide(q, state.rules).policy is WarReadDonePolicy[rows[at]["published"]], (q, rows[at])
    assert all(seen.values()), "a row that no query matches"


def test_the_date_and_the_name_are_those_of_the_table() -> None:
    for state, commit in COMMITS[:-1]:  # the last is a later commit of the same state
        row = next(row for row in TABLE if row["commit"] == commit)
        if row["pull_request"] == "-":
            assert (state.name, row["date"]) == ("before-33587", "before 33587")
        else:
            assert (state.name, state.date) == (row["pull_request"], row["date"])


def test_the_rule_sets_are_public_and_ours_stands_beside_them() -> None:
    assert warfence.RULE_SETS is RULE_SETS
    assert list(RULE_SETS) == [
        "28363",
        "29541",
        "before-33587",
        "33587",
        "34052",
        "34916",
        "34982",
        "35059",
        "warfence",
    ]
    assert RULE_SETS["warfence"] is RULES


def test_only_ours_is_never_early() -> None:
    early = {n: sum(is_early(q, decide(q, rules).policy) for q in every_query()) for n, rules in RULE_SETS.items()}
    assert {name for name, count in early.items() if not count} == {"warfence"}


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_no_rule_of_a_set_is_idle(state: State) -> None:
    """So a rule that is left out is seen by the comparison above."""
    for left_out in state.rules:
        fewer = tuple(rule for rule in state.rules if rule is not left_out)
        assert any(decide(q, fewer).policy is not decide(q, state.rules).policy for q in every_query()), left_out.name


@pytest.mark.parametrize(
    ("name", "declared", "marker", "policy"),
    [
        ("draft-before", SharedReadEnds.IN_GRAPH, True, WarReadDonePolicy.PRE_REPLAY),
        ("36335", SharedReadEnds.PRE_REPLAY, True, WarReadDonePolicy.PRE_REPLAY),
        ("36335", SharedReadEnds.IN_GRAPH, True, WarReadDonePolicy.POST_REPLAY),
        ("37988", SharedReadEnds.PRE_REPLAY, True, WarReadDonePolicy.POST_REPLAY),
        ("warfence", SharedReadEnds.IN_GRAPH, True, WarReadDonePolicy.IN_GRAPH),
    ],
)
def test_a_proposal_says_where_a_draft_extend_publishes(
    name: str, declared: SharedReadEnds, marker: bool, policy: WarReadDonePolicy
) -> None:
    rules = (PROPOSALS | RULE_SETS)[name]
    draft = Query(ForwardMode.DRAFT_EXTEND, declared, marker=marker, draft_read_done=True)
    assert decide(draft, rules).policy is policy


@pytest.mark.parametrize("name", PROPOSALS)
def test_a_proposal_changes_nothing_else(name: str) -> None:
    for q in every_query():
        if not q.draft_publishes:
            assert decide(q, PROPOSALS[name]) == decide(q)
