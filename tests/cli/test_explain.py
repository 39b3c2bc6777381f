"""`warfence explain`: the rule that fired, why, and where the historical sets differ."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from warfence.cli import main
from warfence.cli.rule_sets import launch_cases
from warfence.core.modes import WarReadDonePolicy
from warfence.core.policy import Query, decide
from warfence.parity.history import STATES

DECISIONS = Path(__file__).parents[1] / "parity" / "history" / "decisions.csv"
SNAPSHOTS = "snapshot, live, unknown, composite, rereading"  # kinds whose full layers take a snapshot
TABLE = list(csv.DictReader(DECISIONS.read_text(encoding="utf-8").splitlines()))


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", *arguments]) == 0
    return capsys.readouterr().out


def states(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    found = json.loads(explained(capsys, *arguments, "--json"))
    return {"warfence": found["answer"]} | found["states"]


def policies(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    return {name: answer["policy"] for name, answer in states(capsys, *arguments).items()}


def test_the_rule_that_fires_is_marked_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys)
    assert "decode, attention captured (declares IN_GRAPH), spec none, marker yes" in out
    assert "-> declared-in-graph: IN_GRAPH, because the last read is inside the captured forward" in out
    assert "   declared-post: does not apply (it answers POST_REPLAY)" in out
    assert out.endswith("3 of 8 public states answer otherwise, 3 unsound: --history\n")


def test_a_public_state_is_told_to_be_unsound_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, "--no-marker", "--history")
    assert "-> in-graph-without-marker: POST_REPLAY" in out
    rows = cells(out)
    assert [row[0] for row in rows if row[0]] == [state.name for state in STATES]
    assert [row[2:5] for row in rows if row[0]] == [["PRE_REPLAY", "otherwise", "UNSOUND"]] * len(STATES)
    assert rows[0][1] == "2026-06-22"
    assert "UNSOUND: by '34982' the ticket is taken while reads go on." in explained(
        capsys, "--no-marker", "--rules", "34982"
    )


def cells(out: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("│\n").split("│")] for line in out.splitlines() if line[:1] == "│"]


def test_who_asks_the_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    """A verify of n-grams, which read on behind it. Only the last state has no gate of the algorithm."""
    answers = states(capsys, "--mode", "target_verify", "--attention", "segmented", "--spec", "ngram", "--no-marker")
    said = {name: (a["policy"], a["rule"], a["unsound"]) for name, a in answers.items()}
    assert said.pop("warfence") == ("none", "verify-not-last-reader", False)
    assert said.pop("35059") == ("pre_replay", "otherwise", True)
    assert said.pop("28363") == ("none", "mode-not-covered", False)
    assert set(said.values()) == {("none", "verify-not-supported", False)}


@pytest.mark.parametrize(
    ("attention", "policy"),
    [("captured", "in_graph"), ("segmented", "in_graph"), ("live", "pre_replay"), ("unknown", "pre_replay")],
)
def test_a_draft_has_full_layers_only(attention: str, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = policies(capsys, "--mode", "draft_extend", "--spec", "eagle", "--attention", attention)
    assert found == {state.name: "pre_replay" for state in STATES} | {"warfence": policy}


@pytest.mark.parametrize(("prefill", "policy"), [((), "none"), (("--prefill",), "pre_replay")])
def test_prefill_publishes_with_its_switch(
    prefill: tuple[str, ...], policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    extend = ("--mode", "extend", "--attention", "snapshot", "--spec", "dflash", *prefill)
    assert policies(capsys, *extend)["warfence"] == policy


def test_who_ends_the_step_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    verify = ("--mode", "target_verify", "--spec")
    owner = "It does not end its step: draft_extend follows, and the barrier takes that ticket.\n"
    assert owner in explained(capsys, *verify, "eagle")
    assert owner not in explained(capsys, *verify, "dflash")
    assert "With --spec none no step has such a launch" in explained(capsys, *verify, "none")


def test_the_counts_of_the_differences_are_those_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Counted anew from what the public code did, without our rule sets of it."""
    out = explained(capsys, "--differences")
    for names in (["28363"], ["29541"], ["before-33587"], ["33587"], ["34052", "34916", "34982"], ["35059"]):
        for name in names:
            (state,) = [state for state in STATES if state.name == name]
            published = [(case, answer_of(state.commits[0], case.query)) for case in launch_cases()]
            differ = [(case, policy) for case, policy in published if policy is not decide(case.query).policy]
            unsound = sum(case.unsound(policy) for case, policy in differ)
            listed = ", ".join(f"'{n}'" for n in names)
            assert f"Rules {listed}: {len(differ)} of {len(published)} launches differ, {unsound} unsound" in out
    assert "`warfence boundary --rules` measures it" in out


def answer_of(commit: str, q: Query) -> WarReadDonePolicy:
    seen = {name: value.name if isinstance(value, Enum) else str(int(value)) for name, value in asdict(q).items()}
    for row in TABLE:
        if row["commit"] == commit and all(row[name] in ("*", value) for name, value in seen.items()):
            return WarReadDonePolicy[row["published"]]
    raise AssertionError(f"no row for {q}")


def test_the_differences_are_one_table_a_rule_set(capsys: pytest.CaptureFixture[str]) -> None:
    rows = cells(explained(capsys, "--differences"))
    assert ["target_verify", "rereading", "ngram", "yes, no", "NONE", "POST_REPLAY", "UNSOUND"] in rows
    assert ["target_verify", "rereading", "eagle", "yes, no", "NONE", "POST_REPLAY", "never taken"] in rows
    assert ["draft_extend", "captured, segmented, hybrid", "eagle", "yes", "IN_GRAPH", "PRE_REPLAY", "UNSOUND"] in rows


def test_a_proposal_differs_only_where_a_draft_extend_publishes(capsys: pytest.CaptureFixture[str]) -> None:
    rows = cells(explained(capsys, "--differences", "--rules", "37988"))
    assert rows == [
        ["draft_extend", SNAPSHOTS, "eagle", "yes, no", "PRE_REPLAY", "POST_REPLAY", "later"],
        ["draft_extend", "captured, segmented, hybrid", "eagle", "yes", "IN_GRAPH", "POST_REPLAY", "later"],
    ]  # fmt: skip


def test_the_differences_of_one_rule_set_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(explained(capsys, "--differences", "--rules", "34982", "--prefill", "--json"))
    assert list(found) == ["34982"]
    first = found["34982"][0]
    assert (first["mode"], first["attention"], first["spec"], first["marker"]) == ("decode", "captured", "none", False)
    assert (first["ours"]["policy"], first["theirs"], first["verdict"]) == (
        "post_replay",
        {"policy": "pre_replay", "rule": "otherwise"},
        "UNSOUND",
    )
    assert any(one["mode"] == "extend" and one["prefill"] for one in found["34982"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mode", "dream"], "unknown mode 'dream'; choose one of: decode, extend, mixed"),
        (["--rules", "newest"], "unknown rule set 'newest'; choose one of: 28363, 29541, before-33587, 33587"),
        (["--differences", "--rules", "newest"], "unknown rule set 'newest'; choose one of: 28363, 29541"),
        (["--differences", "--history"], "--differences is about all launches and --history about one"),
        (["--attention", "flash"], "unknown attention backend 'flash'; choose one of: snapshot"),
        (["--spec", "medusa"], "unknown speculative algorithm 'medusa'; known: none, ngram, ngram-snapshot, dflash"),
    ],
)
def test_what_does_not_exist_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *arguments]) == 2
    assert message in capsys.readouterr().err
