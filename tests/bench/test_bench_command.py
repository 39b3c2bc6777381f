"""`warfence bench` on the strict backend: the table, the files, what it was before, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warfence.bench.strategies import NAMES
from warfence.cli import main

FEW = ("bench", "--backend", "strict", "--forward", "1x32", "--quick", "--steps", "8", "--rounds", "1")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "old.json"
    assert main([*FEW, "--strategy", "in_graph", "--strategy", "serial", "--out", str(path)]) == 0
    return path


def test_the_table_has_every_strategy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(FEW) == 0
    streams = capsys.readouterr()
    assert streams.err == ""
    lines = [" ".join(line.split()) for line in streams.out.splitlines()]
    assert any(
        line.startswith("strict on cpu: 1x32, 10 writes, batch 8, 1000 rows (0.1 M parameters)") for line in lines
    )
    assert "fresh_staging not measured: backend strict has no option staging=fresh" in lines
    for name in NAMES:
        assert any(line.startswith((f"│ {name} │", f"{name} not measured: ")) for line in lines), name
    for line in ("ideal ", "publish + barrier, us of the host: in_graph ", "barrier latency, ", "memory: "):
        assert any(one.startswith(line) for one in lines), line


def test_json_is_alone_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FEW, "--strategy", "serial", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["cases"][0]["strategies"]) == ["serial"]
    assert found["settings"]["rounds"] == 1


def test_what_was_written_can_be_read_compared_and_drawn(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    capsys.readouterr()
    drawn = tmp_path / "plots"
    assert main(["bench", "--read", str(written), "--compare", str(written), "--plots", str(drawn)]) == 0
    text = capsys.readouterr().out
    assert "New over old: strict on cpu, 1x32, 10 writes, batch 8, 1000 rows" in text
    assert "│ in_graph │ step_ms" in text
    names = sorted(path.name for path in drawn.iterdir())
    assert names == ["strict-cpu-host-costs.svg", "strict-cpu-over-ideal.svg"]
    for path in drawn.iterdir():
        assert "<svg" in path.read_text()


def test_curves_along_an_axis_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    few = [*FEW, "--strategy", "in_graph", "--axis", "writes", "--plots", str(tmp_path)]
    assert main(few) == 0
    assert (tmp_path / "strict-cpu-1x32-writes.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backend", "torhc"], "unknown backend 'torhc'; nearest: torch"),
        (["--device", "moon"], "--device is 'moon'; choose one of: cpu, cuda"),
        (["--axis", "width"], "unknown axis 'width'; choose one of: forward, "),
        (["--axis", "prefill"], "the axis prefill serves a real trace; give --trace FILE.csv"),
        (["--forward", "huge"], "unknown forward 'huge'; choose one of: tiny, "),
        (["--strategy", "hope"], "unknown strategy 'hope'; choose one of: serial, "),
        (["--steps", "2"], "--steps is 2; give at least 8"),
        (["--rounds", "0"], "--rounds is 0; give at least 1"),
        (["--out", "no/such/folder.json"], "--out 'no/such/folder.json': no file can be written there"),
        (["--compare", "absent.json"], "'absent.json' cannot be read (No such file or directory)"),
        (["--plots", "pyproject.toml"], "--plots 'pyproject.toml' is a file; give a directory"),
        (["--compare", "pyproject.toml"], "'pyproject.toml' is no JSON"),
    ],
)
def test_bad_input_is_one_line_and_two(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--quick", *arguments]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert f"error: {message}" in streams.err
    assert streams.err.count("\n") == 1


def test_a_document_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"format": 7}')
    assert main(["bench", "--read", str(path)]) == 2
    assert "is no document of `warfence bench` of format 1; measure again with --out" in capsys.readouterr().err


def test_a_document_with_a_wrong_field_is_refused_with_the_field(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(written.read_text())
    found["cases"][0]["parameters"] = "many"
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(found))
    capsys.readouterr()
    assert main(["bench", "--read", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"error: '{path}' is no whole document of `warfence bench`: cases[0].parameters is 'many'; allowed is an integer; "
        "measure again with --out\n"
    )


FAILING = '''
"""A backend whose second case fails."""
from warfence.parity.strict.backend import StrictBackend

made = []


class Second(StrictBackend):
    name = "second"

    def __init__(self, device):
        super().__init__(device)
        made.append(self)
        if len(made) > 1:
            raise RuntimeError("out of memory")
'''


def test_what_was_measured_before_a_failure_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "second_fails.py").write_text(FAILING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    few = [word if word != "strict" else "second_fails:Second" for word in FEW]
    with pytest.raises(RuntimeError, match="out of memory"):
        main([*few, "--strategy", "in_graph", "--axis", "batch", "--out", "kept.json"])
    found = json.loads((tmp_path / "kept.json").read_text())
    assert [case["case"]["batch"] for case in found["cases"]] == [1]
