"""Forwards that are broken into segments, and the time that a launch takes, on host lanes. On CUDA: test_torch_cuda.py."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from warfence.core.backend import FORWARD, SCHEDULE, ArraySpec
from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.errors import StageError
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import START, ForwardProgram, Stage
from warfence.serve.fixture import Fixture
from warfence_torch import kernels
from warfence_torch.backend import TorchBackend
from warfence_torch.segments import segments

LAYOUT = BatchLayout(1, 1)
BATCH = pack(LAYOUT, [BatchRow(1, 0, (0,), (0,), False, 0.0, 1.0, ())])
REGIONS = {"a": Region.LOAD_BATCH, **dict.fromkeys("bcde", Region.REPLAY), "f": Region.TAIL}


def program(*breaks: str, fails: str = "") -> ForwardProgram:
    """Stages a to f, of which b and d read the table."""
    stages = tuple(
        Stage(n, region, "fail" if n == fails else "mix", reads=("t",) if n in "bd" else (),
              takes=("req_pool_indices", *(("mix",) if n != "a" else ())), gives=("mix",),
              attrs={"tables": ("t",) if n in "bd" else (), "column": 0})
        for n, region in REGIONS.items()
    )  # fmt: skip
    return ForwardProgram("p", ForwardMode.DECODE, LAYOUT, stages, ("mix",), breaks)


@pytest.fixture
def backend():
    with Fixture(TorchBackend(), {"t": ArraySpec((4, 2))}) as fixture:
        yield fixture.backend


def issue(forward: Any, launch: int) -> Any:
    forward.load_batch(BATCH, launch)
    forward.replay(launch)
    return forward.tail(launch)


def names(parts: Any) -> list[list[str]]:
    return [[f"{step.kind} {step.name}" for step in part] for part in parts]


def test_marker_and_gate_stay_with_their_stage() -> None:
    broken = program("b", "d")
    steps = broken.steps(Region.REPLAY, "b", True)
    assert names(segments(steps, broken.breaks)) == [
        ["gate a", "stage b", "marker b", "gate b"],
        ["stage c", "gate c", "stage d", "gate d"],
        ["stage e"],
    ]
    assert names(segments(steps, ())) == [[step for part in names(segments(steps, broken.breaks)) for step in part]]
    assert names(segments(broken.steps(Region.TAIL, None, False), broken.breaks)) == [["stage f"]]
    assert segments((), ("b",)) == [()]


@pytest.mark.parametrize("breaks", [("b",), ("c", "d"), ("b", "c", "d")])
def test_a_broken_forward_gives_the_same_in_more_pieces_of_work(backend: Any, breaks: tuple[str, ...]) -> None:
    backend._tables.write(backend.lane(SCHEDULE), "t", np.array([2], np.int32), np.array([9], np.int32))
    backend.lane(SCHEDULE).synchronize()
    lane, pieces, given = backend.lane(FORWARD), [], []
    for forward in (backend.compile(program()), backend.compile(program(*breaks))):
        before = lane._submitted
        given += [int(issue(forward, launch).result()["mix"][0]) for launch in (1, 2)]
        pieces.append(lane._submitted - before)
    assert len(set(given)) == 1
    assert pieces[1] - pieces[0] == 2 * len(breaks)


@pytest.mark.slow
def test_a_broken_decoder_says_the_same(decode: Any) -> None:
    whole = decode("cpu")
    broken = decode("cpu", ("layer.0", "layer.1"), "layer.0")
    for (seen, _), (expected, _) in zip(broken, whole, strict=True):
        for name, array in expected.items():
            np.testing.assert_array_equal(seen[name], array)


@pytest.mark.parametrize(("marker_after", "held_at"), [("b", "c"), ("d", "d")])  # in the first segment, in the last
def test_the_marker_opens_the_fence_from_any_segment(backend: Any, marker_after: str, held_at: str) -> None:
    schedule = backend.lane(SCHEDULE)
    forward = backend.compile(program("b", "c"), marker_after=marker_after, gated=True)
    for launch in (1, 2):
        for gate in (START, held_at):
            forward.gates.close(gate)
        outputs = issue(forward, launch)
        schedule.wait(forward.marker.ticket(launch))
        backend._tables.write(schedule, "t", np.array([2], np.int32), np.array([launch], np.int32))
        assert not schedule.settle(1.0), "the forward stands before its reads"
        forward.gates.open(START)
        forward.gates.await_reached(held_at)
        assert schedule.settle(1.0), "the forward stands behind its marker"
        assert backend._tables.snapshot_to_host("t")[1, 0] == launch
        forward.gates.open_all()
        outputs.result()


def test_a_failure_in_a_segment_lets_the_later_marker_go(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(env: Any, attrs: Any) -> dict[str, torch.Tensor]:
        raise RuntimeError("kernel went wrong")

    monkeypatch.setitem(kernels.KERNELS, "fail", fail)
    forward = backend.compile(program("b", "c", fails="c"), marker_after="d")
    schedule = backend.lane(SCHEDULE)
    outputs = issue(forward, 1)
    schedule.wait(forward.marker.ticket(1))
    with pytest.raises(StageError, match=r"launch 1, stage 'c': RuntimeError: kernel went wrong"):
        outputs.result()
    assert outputs.device_s is None
    schedule.synchronize()


def test_a_launch_says_how_long_it_took(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From its own work on, not from when it was issued: what the lane did before does not count."""
    watch = SimpleNamespace(now=10.0)
    monkeypatch.setattr("warfence_torch.forward_host.time", SimpleNamespace(perf_counter=lambda: watch.now))
    forward = backend.compile(program("c"), gated=True)
    busy = threading.Event()
    backend.lane(FORWARD).submit(lambda: busy.wait(10))
    forward.gates.close("c")
    outputs = issue(forward, 1)
    watch.now = 20.0
    busy.set()
    forward.gates.await_reached("c")
    watch.now = 23.0
    forward.gates.open("c")
    outputs.result()
    assert outputs.device_s == 3.0


def test_an_output_that_is_a_field_of_the_batch_is_not_overwritten_by_the_next(backend: Any) -> None:
    stage = Stage(
        "a", Region.REPLAY, "mix", takes=("req_pool_indices",), gives=("mix",), attrs={"tables": (), "column": 0}
    )
    forward = backend.compile(ForwardProgram("p", ForwardMode.DECODE, LAYOUT, (stage,), ("req_pool_indices",)))
    first = issue(forward, 1).result()
    forward.load_batch(pack(LAYOUT, [BatchRow(3, 0, (0,), (0,), False, 0.0, 1.0, ())]), 2)
    backend.lane(FORWARD).synchronize()
    assert first["req_pool_indices"].tolist() == [1]
