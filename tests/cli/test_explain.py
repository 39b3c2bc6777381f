"""`warfence explain`: the rule that fired, why, and where the historical sets differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from warfence.cli import main


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", *arguments]) == 0
    return capsys.readouterr().out


def sets(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    return json.loads(explained(capsys, *arguments, "--json"))["sets"]


def policies(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    return {name: answer["policy"] for name, answer in sets(capsys, *arguments).items()}


def test_the_rule_that_fires_is_marked_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys)
    assert "decode, attention captured (declares IN_GRAPH), spec none, marker yes" in out
    assert "-> declared-in-graph: IN_GRAPH, because the last read is inside the captured forward" in out
    assert "DIFFERENT" not in out


def test_the_historical_sets_are_told_to_be_unsound_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, "--no-marker")
    assert "-> in-graph-without-marker: POST_REPLAY" in out
    assert out.count("UNSOUND: taken while reads go on") == 2
    assert "UNSOUND: by 'unified' the ticket is taken while reads go on." in explained(
        capsys, "--no-marker", "--rules", "unified"
    )


def test_the_order_of_backend_and_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    """A verify of n-grams, which read on behind it. The first rules ask about segments before they ask the algorithm."""
    answers = sets(capsys, "--mode", "target_verify", "--attention", "segmented", "--spec", "ngram", "--no-marker")
    assert {name: (a["policy"], a["rule"], a["unsound"]) for name, a in answers.items()} == {
        "warfence": ("none", "verify-not-last-reader", False),
        "first-published": ("post_replay", "verify-segmented", True),
        "unified": ("none", "verify-not-publish-phase", False),
    }


@pytest.mark.parametrize(
    ("attention", "policy"),
    [("captured", "in_graph"), ("segmented", "in_graph"), ("live", "pre_replay"), ("unknown", "pre_replay")],
)
def test_a_draft_has_full_layers_only(attention: str, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = policies(capsys, "--mode", "draft_extend", "--spec", "eagle", "--attention", attention)
    assert found == {"warfence": policy, "first-published": "none", "unified": "none"}


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


def test_the_differences_are_one_table_a_rule_set(capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, "--differences")
    assert "Rules 'first-published': 65 of 238 launches differ, 41 unsound" in out
    assert "Rules 'unified': 34 of 238 launches differ, 20 unsound" in out
    rows = [[cell.strip() for cell in line.strip("│\n").split("│")] for line in out.splitlines() if line[:1] == "│"]
    assert ["target_verify", "segmented, rereading", "ngram", "yes, no", "NONE", "POST_REPLAY", "UNSOUND"] in rows
    assert ["target_verify", "segmented, rereading", "eagle", "yes, no", "NONE", "POST_REPLAY", "never taken"] in rows
    assert ["draft_extend", "captured, segmented", "eagle", "yes", "IN_GRAPH", "NONE", "later"] in rows
    assert "`warfence boundary --rules` measures it" in out


def test_the_differences_of_one_rule_set_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(explained(capsys, "--differences", "--rules", "unified", "--prefill", "--json"))
    assert list(found) == ["unified"]
    first = found["unified"][0]
    assert (first["mode"], first["attention"], first["spec"], first["marker"]) == ("decode", "captured", "none", False)
    assert (first["ours"]["policy"], first["theirs"], first["verdict"]) == (
        "post_replay",
        {"policy": "pre_replay", "rule": "otherwise"},
        "UNSOUND",
    )
    assert any(one["mode"] == "extend" and one["prefill"] for one in found["unified"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mode", "dream"], "unknown mode 'dream'; choose one of: decode, extend, mixed"),
        (["--rules", "newest"], "unknown rule set 'newest'; choose one of: warfence, first-published, unified"),
        (["--differences", "--rules", "newest"], "unknown rule set 'newest'; choose one of: warfence, first-published"),
        (["--attention", "flash"], "unknown attention backend 'flash'; choose one of: snapshot"),
        (["--spec", "medusa"], "unknown speculative algorithm 'medusa'; known: none, ngram, dflash, eagle"),
    ],
)
def test_what_does_not_exist_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *arguments]) == 2
    assert message in capsys.readouterr().err
