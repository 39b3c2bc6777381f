"""`warfence report`: what it writes, what it refuses before it works, and that a failure leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.show.report.madeup import made_up
from warfence.cli import main
from warfence.cli import report as command
from warfence.parity.cells import matrix
from warfence.parity.report import Report
from warfence.serve.model.config import ModelConfig

BENCH = Path(__file__).parents[3] / "docs/results/bench/2026-11-29-h200-torch.json"


@pytest.fixture
def parity(config: ModelConfig, tmp_path: Path) -> Path:
    """What `warfence parity --json` would have written, all in order."""
    path = tmp_path / "parity.json"
    path.write_text(json.dumps(made_up(matrix(("idle",), ("live",)), config).to_json()))
    return path


@pytest.mark.slow
def test_a_page_of_files_and_a_traced_step(parity: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = parity.with_name("report.html")
    out.write_text("an older page")
    bench = ("--bench", str(BENCH)) if _draws() else ()
    args = ("report", str(out), "--backend", "strict", "--parity", str(parity), *bench, "--no-catalogue")
    assert main(args) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"Written: {out}"
    text = out.read_text("utf-8")
    assert "read from parity.json" in text
    assert "Left out: --no-catalogue was given." in text
    assert "strict on cpu: fence fine, attention captured</text>" in text
    assert ("NVIDIA H200" in text) == bool(bench)
    assert sorted(path.name for path in out.parent.iterdir()) == ["parity.json", "report.html"]


@pytest.mark.slow
def test_what_is_not_in_order_is_written_and_exits_with_1(
    report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "parity.json").write_text(json.dumps(report.to_json()))
    out = tmp_path / "report.html"
    assert (
        main(["report", str(out), "--backend", "strict", "--parity", f"{tmp_path}/parity.json", "--no-catalogue"]) == 1
    )
    assert capsys.readouterr().err == "error: no parity: 2 cells, 1 mutant failed\n"
    assert "not in order" in out.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{0}",), "is a folder; give a file"),
        (("{0}/missing/r.html",), "the report '{0}/missing/r.html': no file can be written there"),
        (("{0}/r.html", "--parity", "{0}/none.json"), "--parity '{0}/none.json' cannot be read"),
        (("{0}/r.html", "--bench", "{0}/parity.json"), "'{0}/parity.json' is no document of `warfence bench`"),
        (("{0}/r.html", "--backend", "trch"), "unknown backend 'trch'; nearest: torch"),
    ],
)
def test_bad_input_is_refused_before_any_work(
    parity: Path, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--bench" in arguments and not _draws():
        pytest.skip("matplotlib is not installed")
    assert main(["report", *(one.format(parity.parent) for one in arguments)]) == 2
    assert message.format(parity.parent) in capsys.readouterr().err
    assert [path.name for path in parity.parent.iterdir()] == ["parity.json"]


def test_quick_has_every_fence_on_few_cells() -> None:
    cells = command.quick_cells()
    assert {(cell.fence, cell.marker) for cell in cells} == {
        (f, m) for f in ("fine", "coarse", "donation") for m in (True, False)
    }
    assert len(cells) == 24


def _draws() -> bool:
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None
