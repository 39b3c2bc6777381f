"""`warfence check`: what it prints, and its exit status."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from tests.races.check.programs import Program, R, W
from warfence.cli import main
from warfence.races.check.events import Event
from warfence.races.check.log_file import write_log

CLEAN = Program().run("F", R("t")).record("F", "e").wait("S", "e").run("S", W("t"))
RACY = Program().run("F", R("t")).run("S", W("t"))


@pytest.fixture(autouse=True, scope="module")
def _command_is_imported() -> None:
    """Or the first test would be charged with it."""
    import_module("warfence.cli.check")


def saved(folder: Path, program: Program) -> str:
    write_log(folder / "run.jsonl", program.events)
    return str(folder / "run.jsonl")


def test_a_clean_log_exits_with_0_and_says_what_was_not_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", saved(tmp_path, CLEAN)]) == 0
    out = capsys.readouterr().out
    assert "4 events on 3 lanes (host, forward, schedule): clean" in out
    assert "What this check cannot see:" in out


def test_a_race_exits_with_1_and_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", saved(tmp_path, RACY)]) == 1
    out = capsys.readouterr().out
    assert "1. race: read of t[0:1]" in out
    assert "earliest: right after" in out


def test_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", saved(tmp_path, RACY), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [finding["kind"] for finding in document["findings"]] == ["race"]
    assert document["events"] == 2


def test_no_readable_log_exits_with_2_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("hello\n")
    assert main(["check", str(tmp_path / "text")]) == 2
    assert "line 1: not the header of a warfence-log" in capsys.readouterr().err


def test_a_wait_cycle_and_the_cost_of_over_fencing_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stands = Program().run("F", R("t"))
    stands.events += [Event("await", "copy", event="E", generation=1), Event("wait_lane", "forward", other="copy")]
    stands.record("F", "E")
    assert main(["check", saved(tmp_path, stands)]) == 1
    out = capsys.readouterr().out
    assert "1. wait-cycle: nothing can go on: copy waits for record 1 of event 'E'; forward waits for " in out
    late = Program()
    for _ in range(2):
        late.run("F", R("t")).run("F", R("m")).run("F", R("n")).wait_lane("S", "F").run("S", W("t"))
        late.wait_lane("F", "S")
    assert main(["check", saved(tmp_path, late)]) == 1
    assert "cost: 4 operations waited for in vain, all times together" in capsys.readouterr().out
    assert main(["check", saved(tmp_path, late), "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["kind"], finding["count"], finding["operations"]) == ("over-fencing", 2, 4)
