"""`warfence replay`: what it prints, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from warfence.cli import main
from warfence.races.scenarios.library import catalogue, find
from warfence.races.scenarios.text import text

ON_TORCH = ("--backend", "torch")


@pytest.mark.slow
def test_a_name_of_the_catalogue_is_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "in-graph-late-read", *ON_TORCH]) == 0
    out = capsys.readouterr().out
    assert "stands at its gate" in out
    assert "in-graph-late-read on torch/cpu: bad, as expected: 'forward store_cache: reads map[5]' of launch 1" in out


def test_the_repaired_twin_stands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "in-graph-late-read", "--fixed", *ON_TORCH]) == 0
    assert "in-graph-late-read, repaired on torch/cpu: ok, as expected" in capsys.readouterr().out


def test_what_is_not_expected_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.scenario"
    file.write_text(text(find("no-fence")).replace("expect   bad", "expect   ok"))
    assert main(["replay", str(file), *ON_TORCH]) == 1
    assert "bad, NOT as expected, which is ok (explored: bad)" in capsys.readouterr().out


def test_what_cannot_be_expressed_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "donation-hold", *ON_TORCH]) == 0
    assert (
        "donation-hold on torch/cpu: not expressed: nothing takes the memory of an array over"
        in capsys.readouterr().out
    )


@pytest.mark.slow
def test_the_catalogue_as_a_document_and_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--catalogue", "--json", *ON_TORCH]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["agree"], document["disagree"]) == (len(catalogue()), 0)
    assert document["support"]["torch/cpu"] > 0.85
    assert main(["replay", "--catalogue", "--fixed", *ON_TORCH]) == 0
    out = capsys.readouterr().out
    assert "verdicts as expected and as explored, 0 not" in out
    assert "there is no donation" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "neither a file nor --catalogue; give one of the two"),
        (["coarse", "--catalogue"], "a file and --catalogue; give one of the two"),
        (["corse"], "no scenario 'corse' in the catalogue; did you mean 'coarse'?"),
        (["coarse", "--backend", "numpy"], "unknown backend 'numpy'; known: torch, jax"),
        (["coarse", "--fixed", *ON_TORCH], "scenario 'coarse' is ok: there is no race in it to repair"),
        (["coarse", "--set", "N=2", *ON_TORCH], "scenario 'coarse' has no parameter 'N'"),
    ],
)
def test_a_wrong_call_exits_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_timeline_shows_who_stood_and_what_ran_behind_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the repaired twin the write stands, and has not run before the read has."""
    path = tmp_path / "run.json"
    assert main(["replay", "no-fence", "--fixed", "--backend", "torch", "--timeline", str(path)]) == 0
    events = [one for one in json.loads(path.read_text())["traceEvents"] if one["ph"] == "X"]
    ends = {one["name"]: one["ts"] + one["dur"] for one in events}
    assert any(name.startswith("stands: recycle") for name in ends)
    assert ends["reads t[3]"] <= ends["recycle: writes t[3]"]
    assert main(["replay", "--catalogue", "--backend", "torch", "--timeline", str(path)]) == 2
    assert "--timeline is of one scenario" in capsys.readouterr().err
