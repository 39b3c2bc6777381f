"""A trial as a timeline: while the forward is held behind its boundary, the write lands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.show.timeline.conftest import model
from tests.show.timeline.trace_format import problems
from warfence import backends
from warfence.cli import main
from warfence.core.errors import InputError
from warfence.parity.cells import matrix
from warfence.show.timeline.launch_times import launch_times
from warfence.show.timeline.trial import first_fine, trace_trial

CELL = first_fine(matrix(("decode",), ("captured",)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("strict", "cpu"),
        ("torch", "cpu"),
        pytest.param("torch", "cuda", marks=pytest.mark.gpu),
        pytest.param("jax", "cuda", marks=pytest.mark.gpu),  # to compile it for the CPU as well takes some seconds
    ],
)
def test_the_write_lands_while_the_forward_is_held(name: str, device: str) -> None:
    if backends.package(name).framework:
        pytest.importorskip(name)
    timeline = trace_trial(backends.load(name)(device=device), model(), CELL)
    (launch,) = launch_times(timeline)
    assert launch.reads_end is not None
    assert launch.written is not None
    assert launch.reads_end < launch.written < launch.over
    layers = [s for s in timeline.slices if "layer.2" in s.stages]
    assert len(layers) == 1
    written = next(s.end for s in timeline.slices if s.kind == "write")
    assert layers[0].end > written


@pytest.mark.slow
def test_parity_writes_a_trial_of_each_backend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "timeline.json"
    few = ["--mode", "decode", "--attention", "captured", "--quick", "--no-laws"]
    assert main(["parity", "--backend", "strict", *few, "--timeline", str(out)]) == 0
    document = json.loads(out.read_text())
    assert problems(document) == []
    assert "held behind 'swa_translate'" in document["otherData"]["1"]["title"]
    assert f"Written: {out}" in capsys.readouterr().out


def test_a_timeline_needs_a_fine_cell() -> None:
    with pytest.raises(InputError, match="shows a cell with a fine fence and a marker; none was chosen"):
        first_fine(cell for cell in matrix() if cell.fence == "coarse")
