"""`warfence trace` and `--timeline`: the files, what is told, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree.ElementTree import parse

import pytest

from tests.serve.jobs.conftest import PROMPTS, STRICT, write_model
from tests.show.timeline.trace_format import problems
from warfence.cli import main


@pytest.mark.slow
def test_it_writes_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, svg = tmp_path / "trace.json", tmp_path / "trace.svg"
    assert main(["trace", "--backend", "strict", "--out", str(out), "--svg", str(svg), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (timeline,) = told["timelines"]
    assert [one["mode"] for one in timeline["launches"]] == ["decode"] * 2
    assert all(one["reads_end"] < one["goes_on"] < one["written"] < one["over"] for one in timeline["launches"])
    assert problems(json.loads(out.read_text())) == []
    assert parse(svg).getroot().get("class") == "wft"


@pytest.mark.slow
def test_serve_writes_a_timeline_of_all_that_it_serves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prompts.txt").write_text("\n".join(PROMPTS) + "\n")
    model, out = write_model(tmp_path / "tiny"), tmp_path / "timeline.json"
    given = ["--model", model, "--prompts", tmp_path / "prompts.txt", "--max-new-tokens", 6, "--timeline", out]
    for more in ([], ["--fence", "off", "--allow-hazard"]):
        assert main(["serve", "--backend", STRICT, *map(str, given), *more]) == 0
        assert f"Written: {out}" in capsys.readouterr().out
        assert problems(json.loads(out.read_text())) == []
        out.unlink()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["trace", "--out", "missing/trace.json"], "--out 'missing/trace.json': no file can be written there"),
        (["trace", "--fence", "none"], "--fence is 'none'; choose one of: fine, self, coarse, off"),
        (["trace", "--backend", "torch", "--backend", "jax", "--profile"], "give one --backend"),
        (["trace", "--backend", "strict", "--profile"], "backend 'strict' has no profiler of its own"),
        (["serve", "--timeline", "missing/t.json"], "--timeline 'missing/t.json': no file can be written there"),
    ],
)
def test_bad_input(
    given: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(given) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
