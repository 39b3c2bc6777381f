"""`warfence serve --watch LOG`: the run is recorded, and its check is told in two lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serve.jobs.conftest import PROMPTS, STRICT, write_model
from warfence.cli import main
from warfence.races.check.log_file import read_log


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("watch")
    (folder / "prompts.txt").write_text("\n".join(PROMPTS) + "\n")
    model = write_model(folder / "tiny")
    given = ["--model", model, "--prompts", folder / "prompts.txt", "--rows", 3, "--max-new-tokens", 6]
    return ["serve", "--backend", STRICT, *map(str, given)]


@pytest.mark.slow
def test_a_fenced_run_has_no_race_and_its_log_can_be_checked_again(
    serve: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    assert main([*serve, "--watch", str(log)]) == 0
    out = capsys.readouterr().out
    assert f"Watched {len(read_log(log).events)} events: race 0, over-fencing" in out
    assert out.rstrip().endswith(f"warfence check {log}")


@pytest.mark.slow
def test_a_run_is_watched_and_timed_at_once(
    serve: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, alone, times = tmp_path / "log.jsonl", tmp_path / "alone.jsonl", tmp_path / "times.json"
    assert main([*serve, "--watch", str(log), "--timeline", str(times)]) == 0
    assert f"Watched {len(read_log(log).events)} events: race 0" in capsys.readouterr().out
    assert {"wait", "call", "stage"} <= {event.get("cat") for event in json.loads(times.read_text())["traceEvents"]}
    assert main([*serve, "--watch", str(alone)]) == 0
    assert len(read_log(log).events) == len(read_log(alone).events), "neither sees the other"


@pytest.mark.slow
def test_a_run_without_a_fence_has_races(serve: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    assert main([*serve, "--fence", "off", "--allow-hazard", "--watch", str(log), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["watch"]
    assert found["found"]["race"] > 0
    assert found["events"] == len(read_log(log).events)
    assert main(["check", str(log)]) == 1


def test_a_log_that_cannot_be_written_is_refused_before_anything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--watch", str(tmp_path / "none" / "log")]) == 2
    assert "no file can be written there" in capsys.readouterr().err
