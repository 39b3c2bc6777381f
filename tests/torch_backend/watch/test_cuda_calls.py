"""How calls of torch.cuda are understood where no scenario can make them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.torch_backend.watch.stands import CudaStand
from warfence_torch import stage
from warfence_torch.tools.capture import capturing
from warfence_torch.tools.watching import Watch, watch


@pytest.fixture
def cuda(on_cuda: None) -> CudaStand:
    return CudaStand()


def watched(stand: CudaStand, program: Callable[[torch.Tensor], object]) -> Watch:
    with watch(shared=stand.shared, host={"pin": stand.pin}, names=stand.names) as log:
        program(stand.shared["t"])
    return log


def races(log: Watch) -> bool:
    return "race" in log.check().kinds()


@pytest.mark.parametrize("joined", [True, False])
def test_a_side_stream_inside_a_graph_is_seen(cuda: CudaStand, joined: bool) -> None:
    """The marker stands behind the join, or before it: then the side stream may still read."""

    def program(t: torch.Tensor) -> None:
        marker, graph = cuda.marker(), torch.cuda.CUDAGraph()
        main, side = cuda._streams["F"], cuda._streams["C"]
        with capturing(graph, main):
            side.wait_stream(main)
            with torch.cuda.stream(side):
                t.sum()
            if not joined:
                marker.record(main)
            main.wait_stream(side)
            if joined:
                marker.record(main)
        for _ in range(2):
            cuda.replay("F", graph)
            cuda.wait("S", marker)
            cuda.run("S", t.zero_)
            cuda.wait_lane("F", "S")

    log = watched(cuda, program)
    assert races(log) is not joined
    assert "forward/copy" in log.check().lanes


def test_an_event_inside_a_graph_forks_as_a_stream_does(cuda: CudaStand) -> None:
    def program(t: torch.Tensor) -> None:
        forked, joined, graph = cuda.event(), cuda.event(), torch.cuda.CUDAGraph()
        main, side = cuda._streams["F"], cuda._streams["C"]
        with capturing(graph, main):
            t.zero_()
            forked.record(main)
            side.wait_event(forked)
            with torch.cuda.stream(side):
                t.sum()
            joined.record(side)
            main.wait_event(joined)
            t.zero_()
        cuda.replay("F", graph)

    log = watched(cuda, program)
    assert [(e.kind, e.lane, e.launch) for e in log.log.events if e.resource] == [
        ("write", "forward", 1), ("read", "forward/copy", 1), ("write", "forward", 1),
    ]  # fmt: skip
    assert not races(log)


def test_nothing_of_a_capture_is_executed_before_its_replay(cuda: CudaStand) -> None:
    log = watched(cuda, lambda t: cuda.capture("F", t.sum))
    assert [e for e in log.log.events if e.resource] == []


def test_a_graph_from_before_the_watch_is_said_loudly(cuda: CudaStand) -> None:
    graph = cuda.capture("F", cuda.shared["t"].sum)
    with watch(shared=cuda.shared, names={graph: "decode"}) as log:
        cuda.replay("F", graph)
        cuda.replay("F", graph)
    said = [sentence for sentence in log.log.missed if "'decode'" in sentence]
    assert len(said) == 1
    assert said[0].startswith("ALL that 'decode' reads and writes: it was captured before the watch began")
    assert said[0] in log.check().missed


def test_an_event_from_before_the_watch_is_said(cuda: CudaStand) -> None:
    before = cuda.event()
    cuda.record("F", before)
    log = watched(cuda, lambda _: cuda.wait("S", before))
    assert log.log.events == ()
    assert any("record from before the watch" in sentence for sentence in log.log.missed)


def on_device(t: torch.Tensor) -> bool:
    """Whether there is a device; without one, what only a device would do is left out."""
    return t.device.type == "cuda"


def ordered_by(cuda: CudaStand, how: str, t: torch.Tensor) -> None:
    stream = cuda._streams["F"]
    if how == "stream":
        stream.synchronize()
    elif how == "query":
        while not stream.query():
            pass
    elif how == "device":
        torch.cuda.synchronize()
    else:
        with torch.cuda.stream(stream):
            {
                "item": lambda: t.sum().item() if on_device(t) else t[0].item(),
                "nonzero": t.nonzero,
                "mask": lambda: t[t > 0] if on_device(t) else t[torch.ones(64, dtype=torch.bool)],
                "blocking copy": lambda: cuda.pin.copy_(t),
                "none": t.sum,
            }[how]()


@pytest.mark.parametrize("how", ["stream", "query", "device", "item", "nonzero", "mask", "blocking copy", "none"])
def test_what_the_host_waits_for(cuda: CudaStand, how: str) -> None:
    def program(t: torch.Tensor) -> None:
        cuda.run("F", t.sum)
        ordered_by(cuda, how, t)
        cuda.run("S", t.zero_)

    assert races(watched(cuda, program)) is (how == "none")


@pytest.mark.parametrize("memory", ["pinned", "array of pinned", "pageable"])
def test_pinned_memory_is_read_by_the_stream_and_pageable_memory_at_the_call(cuda: CudaStand, memory: str) -> None:
    source = torch.zeros(64) if memory == "pageable" else cuda.pin
    given = source.numpy() if memory == "array of pinned" else source
    with watch(shared=cuda.shared, host={"source": given}, names=cuda.names) as log:
        cuda.run("F", lambda: cuda.shared["t"].copy_(source, non_blocking=True))
        source.fill_(1.0)
    assert races(log) is (memory != "pageable")


def test_behind_a_failed_capture_calls_are_executed_again(cuda: CudaStand) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    def program(t: torch.Tensor) -> None:
        with pytest.raises(ZeroDivisionError):
            cuda.capture("F", t.sum, fail)
        cuda.run("F", t.zero_)

    log = watched(cuda, program)
    assert [(e.kind, e.lane) for e in log.log.events if e.resource] == [("write", "forward")]


def test_streams_without_a_name_are_numbered(cuda: CudaStand) -> None:
    with watch(shared=cuda.shared) as log:
        cuda.shared["t"].sum()
        cuda.run("F", cuda.shared["t"].sum)
    assert log.check().lanes == ("host", "default", "stream 1")


@pytest.mark.gpu
@pytest.mark.parametrize("recorded", [True, False])
def test_a_block_whose_stream_the_allocator_knows_is_no_race(recorded: bool) -> None:
    stand = CudaStand()
    with watch(blocks=True) as log:
        block = stand.allocate("S")
        address = block.data_ptr()
        stand.wait_lane("F", "S")
        stand.run("F", block.sum)
        if recorded:
            block.record_stream(stand._streams["F"])
        del block
        kept = [stand.allocate("S")]
        while kept[-1].data_ptr() != address and len(kept) < 64:
            kept.append(stand.allocate("S"))
    assert races(log) is not recorded


def test_touched_device_memory_is_touched_by_the_current_stream(cuda: CudaStand) -> None:
    with watch(shared=cuda.shared) as log, stage("tail"):
        log.touch("t", "write")
    (event,) = log.log.events
    assert (event.stage, event.lane, event.end) == ("tail/touch", "default", 64)


def test_wait_stream_is_one_wait_for_all_of_the_other_lane(cuda: CudaStand) -> None:
    log = watched(cuda, lambda _: cuda.wait_lane("S", "F"))
    assert [(e.kind, e.lane, e.other) for e in log.log.events] == [("wait_lane", "schedule", "forward")]
