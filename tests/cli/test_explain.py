"""`warfence explain`: the rule that fired, why, and where the historical sets differ."""

from __future__ import annotations

import json

import pytest

from warfence.cli import main


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", *arguments]) == 0
    return capsys.readouterr().out


def test_the_rule_that_fires_is_marked_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys)
    assert "-> declared-in-graph: IN_GRAPH, because the last read is inside the captured forward" in out
    assert "DIFFERENT" not in out


def test_the_historical_sets_are_told_to_be_unsound_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, "--no-marker")
    assert "-> in-graph-without-marker: POST_REPLAY" in out
    assert out.count("EARLIER than the reads end: unsound") == 2


def test_the_order_of_backend_and_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    sets = json.loads(
        explained(capsys, "--mode", "target_verify", "--attention", "snapshot", "--segmented", "--no-marker", "--json")
    )["sets"]
    assert {name: answer["policy"] for name, answer in sets.items()} == {
        "warfence": "none",
        "first-published": "post_replay",
        "unified": "none",
    }
    assert sets["first-published"]["rule"] == "verify-segmented"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mode", "dream"], "unknown mode 'dream'; choose one of: decode, extend, mixed"),
        (["--rules", "newest"], "unknown rule set 'newest'; choose one of: warfence, first-published, unified"),
        (["--attention", "flash"], "unknown attention backend 'flash'; choose one of: snapshot"),
        (["--spec", "medusa"], "unknown speculative algorithm 'medusa'; registered: none, dflash"),
    ],
)
def test_what_does_not_exist_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *arguments]) == 2
    assert message in capsys.readouterr().err
