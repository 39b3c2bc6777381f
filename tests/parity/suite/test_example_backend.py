"""The worked third backend is short, and the parity suite passes on it (all of it with WARFENCE_THOROUGH=1)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warfence.cli import main

ROOT = Path(__file__).resolve().parents[3]
TARGET = "examples.threads_package:PACKAGE"


def test_it_is_short() -> None:
    assert len((ROOT / "examples" / "threads_backend.py").read_text().splitlines()) < 150


@pytest.mark.parametrize(("name", "shown"), [("no-fence", "bad"), ("in-graph", "ok"), ("wait-cycle", "cycle")])
def test_it_takes_part_in_replay(
    name: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["replay", name, "--backend", TARGET, "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert (result["machine"], result["verdict"]) == ("threads/cpu", shown)


def test_its_class_alone_says_nothing_of_replay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["replay", "no-fence", "--backend", "examples.threads_backend:ThreadsBackend"]) == 2
    assert "does not say how it replays scenarios; choose one of: torch, jax; or give" in capsys.readouterr().err


def test_its_lanes_judge_a_sweep(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    few = ["--family", "fence", "--limit", "20", "--workers", "1"]
    assert main(["sweep", "--backend", TARGET, *few, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["families"]["fence"]["judged"]["lanes of threads/cpu"] == 20


@pytest.mark.slow
def test_the_suite_passes_on_it() -> None:
    command = [sys.executable, "-m", "pytest", "parity_tests", "-q", "-p", "no:cacheprovider", "--backend", TARGET]
    if os.environ.get("WARFENCE_THOROUGH") != "1":
        command += ["-k", "(test_laws and law_holds) or no_fence_corrupts or (test_matrix and decode and captured)"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
