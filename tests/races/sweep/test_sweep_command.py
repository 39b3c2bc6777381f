"""`warfence sweep`: what it prints and keeps, its exit status, and how it goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from warfence.cli import main
from warfence.races.scenarios.explore import explore
from warfence.races.sweep import judges
from warfence.races.sweep.families import FAMILIES

SMALL = ["sweep", "--family", "short", "--family", "random", "--limit", "66", "--workers", "1"]
VARYING = ("seconds", "worker_seconds")


@pytest.fixture(autouse=True, scope="module")
def _command_is_imported() -> None:
    """Or the first test would be charged with it."""
    import_module("warfence.cli.sweep")


def documents(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def without_times(document):
    if isinstance(document, dict):
        return {key: without_times(value) for key, value in document.items() if key not in VARYING}
    return document


def interrupt_after(monkeypatch: pytest.MonkeyPatch, cases: int) -> None:
    """Ctrl-C in the middle of a chunk."""
    count, judge = iter(range(1000)), judges.judge

    def counted(*args):
        if next(count) == cases:
            raise KeyboardInterrupt
        return judge(*args)

    monkeypatch.setattr(judges, "judge", counted)


@pytest.mark.slow
def test_what_was_interrupted_goes_on_and_ends_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, whole = tmp_path / "out.json", tmp_path / "whole.json"
    with monkeypatch.context() as patched:
        interrupt_after(patched, 100)
        assert main([*SMALL, "--out", str(out)]) == 130
    said = capsys.readouterr().err
    assert (
        said == f"interrupted: 66 cases had been judged, and are kept in {out}: the same options with --resume go on\n"
    )
    with out.open("a") as file:
        file.write('{"chunk": {"chunk": 2, "fam')  # the power failed here
    seen = []
    with monkeypatch.context() as patched:
        judge = judges.judge
        patched.setattr(judges, "judge", lambda *args: (seen.append(args), judge(*args))[1])
        assert main([*SMALL, "--out", str(out), "--resume"]) == 0
    assert len(seen) == 66, "what was kept is not judged again"
    assert main([*SMALL, "--out", str(whole), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))
    assert without_times(documents(out)[-1]["result"]) == without_times(documents(whole)[-1]["result"])
    assert without_times(printed) == without_times(documents(whole)[-1]["result"])
    assert printed["cases"] == 132
    assert main([*SMALL, "--out", str(whole), "--resume"]) == 0
    assert [*documents(whole)[-1]] == ["result"]
    assert sum("result" in one for one in documents(whole)) == 1


@pytest.mark.slow
def test_workers_find_what_one_process_finds(tmp_path: Path) -> None:
    results = []
    for workers in ("1", "2"):
        out = tmp_path / f"{workers}.json"
        assert main(["sweep", "--family", "short", "--limit", "130", "--workers", workers, "--out", str(out)]) == 0
        results.append(without_times(documents(out)[-1]["result"]))
    assert results[0] == results[1]


@pytest.mark.slow
def test_lanes_of_torch_agree_and_show_what_others_overlook(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["sweep", "--backend", "torch", "--limit", "5", "--workers", "1"]) == 0
    out = capsys.readouterr().out
    assert "fence, cases judged: oracle 5, explorer 5, checker 5, lanes of torch/cpu 5\n" in out
    assert f"{5 * len(FAMILIES)} cases, 0 disagreements" in out
    monkeypatch.setattr(judges, "explore", lambda one: replace(explore(one), verdict="ok", witness=None))
    monkeypatch.setattr(judges, "checked", lambda outcome: "ok")
    assert main(["sweep", "--family", "random", "--backend", "torch", "--limit", "3", "--workers", "1"]) == 1
    assert "explorer says ok and lanes of torch/cpu says bad" in capsys.readouterr().out


def test_a_disagreement_is_shown_shrunk_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "checked", lambda outcome: "ok")
    out = tmp_path / "out.json"
    assert main(["sweep", "--family", "short", "--limit", "30", "--workers", "1", "--out", str(out)]) == 1
    caught = capsys.readouterr()
    assert "error: judges disagree about " in caught.err
    result = documents(out)[-1]["result"]
    first = result["shrunk"][0]
    assert first["program"] in caught.out
    assert (tmp_path / f"out-{first['id']}.scenario").read_text() == first["program"]
    assert result["failures"] == len(result["disagreements"]) > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--family", "fences"], "unknown family 'fences'; nearest: fence"),
        (["--backend", "torhc"], "unknown backend 'torhc'; nearest: torch"),
        (["--backend", "none", "--backend", "torch"], "--backend none is for no lanes at all"),
        (["--limit", "0"], "Invalid value for '--limit'"),
        (["--steps", "0"], "Invalid value for '--steps'"),
        (["--workers", "-1"], "Invalid value for '--workers'"),
        (["--resume"], "--resume goes on with a file; give --out"),
        (["--out", "no/such/folder/x.json"], "no file can be written there"),
        (["--backend", "torch", "--device", "tpu"], "unknown device 'tpu'; nearest: cpu"),
    ],
)
def test_options_that_cannot_be(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, *options]) == 2
    assert said in capsys.readouterr().err


def test_a_file_is_never_written_over_and_never_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = ["sweep", "--family", "short", "--limit", "10", "--workers", "1"]
    out = tmp_path / "out.json"
    assert main([*short, "--out", str(out)]) == 0
    before = out.read_text()
    assert main([*short, "--out", str(out)]) == 2
    assert "exists; give --resume to go on with it, or another name" in capsys.readouterr().err
    assert main([*short, "--seed", "3", "--out", str(out), "--resume"]) == 2
    assert "is of a sweep with other options: seed 0 (now 3)" in capsys.readouterr().err
    assert out.read_text() == before
    out.write_text("{}\n")
    assert main([*short, "--out", str(out), "--resume"]) == 2
    assert "is no file of `warfence sweep`" in capsys.readouterr().err
    out.write_text(before.replace('"chunk"', "chunk", 1))
    assert main([*short, "--out", str(out), "--resume"]) == 2
    assert "line 2 is no JSON" in capsys.readouterr().err


def test_too_many_cases_are_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    assert main(["sweep", "--steps", "8", "--out", str(out)]) == 2
    many = "family 'short' has 2290649224 cases with --steps 8, more than 500000; give --limit, or fewer --steps"
    assert many in capsys.readouterr().err
    assert not out.exists()
