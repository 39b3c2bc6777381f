"""The benchmark of watching runs, and both of its runs are served."""

from __future__ import annotations

import importlib.util
from functools import partial
from pathlib import Path

import pytest

from warfence.serve.jobs.options import ServeOptions

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "watch_cost.py"


@pytest.mark.slow
def test_it_prints_a_row_for_a_backend(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("watch_cost", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "ROUNDS", 1)
    monkeypatch.setattr(script, "ServeOptions", partial(ServeOptions, limit=2, max_new_tokens=4))
    script.main(["torch"])
    header, row = capsys.readouterr().out.splitlines()
    assert header.split()[0] == "backend"
    assert row.split()[0] == "torch"
    assert row.split()[-1] == "0", "behind the fence nothing races"
