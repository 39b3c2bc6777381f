"""A timeline over a trace of torch's profiler of the same run: one clock, processes kept apart."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.show.timeline.conftest import Trace, run
from tests.show.timeline.trace_format import problems
from warfence.core.errors import InputError
from warfence.show.timeline.model import Timeline
from warfence.show.timeline.overlay import overlay
from warfence.show.timeline.trace_events import trace_events

WITHIN_US = (
    500.0  # the profiler times an operation inside of the call that a slice times; a busy machine switches between
)


def laid_over(tmp_path: Path, device: str) -> dict[str, Any]:
    profile = tmp_path / "profile.json"
    return overlay(run("torch", device, requests=2, profile=profile), profile)


def ours(document: dict[str, Any]) -> int:
    """The process of the timeline."""
    return next(
        e["pid"] for e in document["traceEvents"] if e["name"] == "process_name" and e["args"]["name"] == "torch fine"
    )


@pytest.mark.slow
def test_slices_lie_around_the_operations_of_their_stages(tmp_path: Path) -> None:
    document = laid_over(tmp_path, "cpu")
    events, pid = document["traceEvents"], ours(document)
    slices = sorted((e for e in events if e["pid"] == pid and e["ph"] == "X"), key=lambda e: e["ts"])
    layers = [s for s in slices if s["name"].startswith("layer.")]
    assert len(layers) > 30
    products = sorted((e for e in events if e.get("name") == "aten::bmm"), key=lambda e: e["ts"])
    assert products
    around = [
        any(s["ts"] - WITHIN_US <= p["ts"] and p["ts"] + p["dur"] <= s["ts"] + s["dur"] + WITHIN_US for s in layers)
        for p in products
    ]
    assert all(around)  # only layers multiply batches of matrices
    tight = [any(s["ts"] <= p["ts"] + p["dur"] / 2 <= s["ts"] + s["dur"] for s in layers) for p in products]
    assert sum(tight) > 0.95 * len(tight)  # a clock that is off by a stage would miss most of them


@pytest.mark.gpu
@pytest.mark.slow
def test_on_a_gpu_kernels_lie_in_the_slices_of_the_device(tmp_path: Path) -> None:
    document = laid_over(tmp_path, "cuda")
    events, pid = document["traceEvents"], ours(document)
    stages = [e for e in events if e["pid"] == pid and e["ph"] == "X" and "program" in e["args"]]
    kernels = [e for e in events if e.get("cat") == "kernel" and stages[0]["ts"] <= e["ts"] <= stages[-1]["ts"]]
    assert len(kernels) > 500
    inside = [
        any(s["ts"] - 50 <= k["ts"] and k["ts"] + k["dur"] <= s["ts"] + s["dur"] + 50 for s in stages) for k in kernels
    ]
    assert sum(inside) > 0.9 * len(inside)  # the rest are table writes and copies


def test_processes_and_flows_are_kept_apart(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "profile.json.gz"
    theirs = [{"ph": "X", "name": "aten::mm", "cat": "cpu_op", "pid": 1, "tid": 7, "ts": 5.0, "dur": 1.0}]
    profile = {"schemaVersion": 1, "baseTimeNanoseconds": 1_000_000, "traceEvents": theirs}
    path.write_bytes(gzip.compress(json.dumps(profile).encode()))
    timeline = _at(trace("strict"), 3_000_000)
    document = overlay(timeline, path)
    assert problems(document) == []
    assert document["schemaVersion"] == 1
    assert document["traceEvents"][0] == theirs[0]
    assert {e["pid"] for e in document["traceEvents"]} == {1, 2}
    alone = [e["ts"] for e in trace_events(timeline)["traceEvents"] if e["ph"] == "X"]
    shifted = [e["ts"] for e in document["traceEvents"] if e["ph"] == "X" and e["pid"] == 2]
    assert shifted == pytest.approx([ts + 2000 for ts in alone])  # 2 ms lie between the two zeros


def test_what_cannot_be_laid_over(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="a timeline in virtual time lies over no profile; trace a backend with a clock"
    ):
        overlay(trace("strict"), tmp_path / "profile.json")
    timeline = _at(trace("strict"), 0)
    with pytest.raises(InputError, match=r"missing.json. cannot be read"):
        overlay(timeline, tmp_path / "missing.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(
        InputError, match=r"is no profile that a timeline can lie over: it has no 'baseTimeNanoseconds'"
    ):
        overlay(timeline, tmp_path / "other.json")


def _at(timeline: Timeline, unix_ns: int) -> Timeline:
    return replace(timeline, unix_ns=unix_ns)
