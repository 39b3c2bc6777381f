"""plant() on CUDA: the marker as a node of the graph, held by gates without an SM; reads on side streams; refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from warfence.core.backend import FORWARD, SCHEDULE
from warfence.core.errors import InputError
from warfence_torch import plant, read_graph
from warfence_torch.backend import TorchBackend

pytestmark = pytest.mark.gpu

GATES = ("first read", "before the last read", "behind the last read", "side, before", "side, behind")
OLD, NEW = 1.0, 100.0
BOUND_S = 5.0


class Rig:
    """A table, gates that are captured with the function, a forward lane, and a scheduler that writes behind a ticket."""

    def __init__(self) -> None:
        from warfence_torch.gates_cuda import CudaGates

        self.backend = TorchBackend("cuda")
        self.forward, self.schedule = self.backend.lane(FORWARD), self.backend.lane(SCHEDULE)
        self.gates = CudaGates(GATES)
        self.table = torch.full((2, 4), OLD, device="cuda")
        self.idx = torch.tensor([1], device="cuda")
        self.side = torch.cuda.Stream()
        self.launches = 0

    def gate(self, name: str) -> None:
        if torch.cuda.is_current_stream_capturing():
            self.gates.capture(name, torch.cuda.current_stream())

    def launch(self, planted: Any, held_at: str, also_reached: str | None = None) -> bool:
        """Issue, hold, and try to write. Whether the write landed while the forward was held."""
        self.table.fill_(OLD)
        torch.cuda.synchronize()
        self.launches += 1
        for gate in filter(None, (held_at, also_reached)):
            self.gates.close(gate)
        planted.replay(self.forward, self.launches)
        self.schedule.wait(planted.ticket(self.launches))
        with self.schedule.current:
            self.table.fill_(NEW)
        for gate in filter(None, (held_at, also_reached)):
            self.gates.await_reached(gate)
        landed = self.schedule.settle(BOUND_S)
        self.gates.open_all()
        torch.cuda.synchronize()
        assert not self.gates.watchdog_fired
        assert (self.table == NEW).all()
        return landed


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.gates.open_all()
    rig.backend.close()


def on_one_stream(rig: Rig) -> Callable[[], Tensor]:
    view = rig.table.view(-1)[4:].view(1, 4)

    def fn() -> Tensor:
        rows = rig.table[rig.idx]
        rig.gate("first read")
        scale = torch.full((1,), 2.0, device="cuda")
        rig.gate("before the last read")
        scaled = view * scale
        rig.gate("behind the last read")
        return rows + scaled

    return fn


def test_the_write_lands_exactly_when_the_last_read_is_over(rig: Rig) -> None:
    planted = plant(on_one_stream(rig), {"table": rig.table})
    assert planted.graph is not None
    assert "test_plant_cuda.py:" in planted.boundary.after.where
    assert planted.boundary.after.kind == "kernel node"
    for _ in range(2):
        assert [rig.launch(planted, gate) for gate in GATES[:3]] == [False, False, True]
        assert planted.output.tolist() == [[OLD + 2 * OLD] * 4]


def test_a_marker_one_reader_early_lets_the_write_in_front_of_the_read(rig: Rig) -> None:
    from warfence.parity.boundary.find import ends
    from warfence_torch.tools.graphs.copies import made_event, put_record
    from warfence_torch.tools.graphs.driver import raw_graph
    from warfence_torch.tools.graphs.nodes import list_nodes
    from warfence_torch.tools.graphs.planted import GraphPlanted

    fn = on_one_stream(rig)
    fn()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        output = fn()
    listed, found = list_nodes(raw_graph(graph)), read_graph(graph, [rig.table]).boundary
    early = found.reads[-2]
    event = made_event(torch.cuda.current_stream())
    put_record(listed.raw, [listed.handles[early.position]], event)
    graph.instantiate()
    wrong = ends([early], found.reads[:-1], (), found.operations)
    planted = GraphPlanted(wrong, output, [], event, lambda _: graph.replay(), (graph,))
    assert [rig.launch(planted, gate) for gate in GATES[:2]] == [True, True]
    assert output.tolist() == [[OLD + 2 * NEW] * 4]


def on_two_streams(rig: Rig, last_on_side: bool) -> Callable[[], Tensor]:
    def fn() -> Tensor:
        main = torch.cuda.current_stream()
        rig.side.wait_stream(main)

        def read_on_side() -> Tensor:
            with torch.cuda.stream(rig.side):
                rig.gate("side, before")
                got = rig.table[rig.idx]
                rig.gate("side, behind")
            return got

        def read_on_main() -> Tensor:
            rig.gate("before the last read")
            got = rig.table[0] * 2
            rig.gate("behind the last read")
            return got

        ours, theirs = (read_on_main(), read_on_side()) if last_on_side else (read_on_side(), read_on_main())
        main.wait_stream(rig.side)
        return ours + theirs

    return fn


@pytest.mark.parametrize("last_on_side", [False, True])
def test_the_marker_stands_behind_the_reads_of_all_streams_and_delays_none(rig: Rig, last_on_side: bool) -> None:
    planted = plant(on_two_streams(rig, last_on_side), {"table": rig.table})
    assert any("the reads end on 2 branches: the marker stands behind" in line for line in planted.report())
    # The one stream is held before its read while the other has come past its own: it was not made to wait.
    assert not rig.launch(planted, "side, before", also_reached="behind the last read")
    assert not rig.launch(planted, "before the last read", also_reached="side, behind")
    assert rig.launch(planted, "side, behind", also_reached="behind the last read")
    assert planted.output.tolist() == [[OLD + 2 * OLD] * 4]


def test_reads_on_a_side_stream_alone_are_joined_too(rig: Rig) -> None:
    def fn() -> Tensor:
        main = torch.cuda.current_stream()
        rig.side.wait_stream(main)
        with torch.cuda.stream(rig.side):
            rig.gate("side, before")
            got = rig.table[rig.idx]
        rig.gate("behind the last read")
        main.wait_stream(rig.side)
        return got + 1

    planted = plant(fn, {"table": rig.table})
    assert not rig.launch(planted, "side, before", also_reached="behind the last read")
    assert rig.launch(planted, "behind the last read")
    assert planted.output.tolist() == [[OLD + 1] * 4]


def test_nothing_shared_is_read_so_the_ticket_is_out_before_the_replay(rig: Rig) -> None:
    def fn() -> Tensor:
        rig.gate("first read")
        return rig.idx + 1

    assert rig.launch(plant(fn, {"table": rig.table}), "first read")


def refused(rig: Rig, fn: Callable[[], object], said: str) -> None:
    before = torch.cuda.current_stream()
    with pytest.raises(InputError, match=said):
        plant(fn, {"table": rig.table})
    assert torch.cuda.current_stream() == before
    assert rig.table.sum().item() == 8 * OLD  # the device still works


def test_what_cannot_be_captured_is_refused_with_the_line(rig: Rig) -> None:
    for fn in (
        lambda: rig.table[0, 0].item(),
        lambda: rig.table[rig.table > 0],
        lambda: (rig.table + 1).cpu(),
        lambda: (rig.table + 1, torch.cuda.synchronize()),
    ):
        refused(rig, fn, r"cannot be captured; refused at .*test_plant_cuda.py:\d+ in <lambda>")


def test_random_numbers_are_drawn_after_a_refused_capture(rig: Rig) -> None:
    refused(rig, lambda: rig.table[0, 0].item(), "cannot be captured")
    assert torch.rand(3, device="cuda").shape == (3,)


def test_a_copy_of_pageable_memory_is_refused(rig: Rig) -> None:
    pageable = torch.ones(4)
    refused(
        rig,
        lambda: rig.table[0] + pageable.to("cuda", non_blocking=True),
        "pageable host memory.* use pinned|cannot be captured",
    )


def test_a_function_that_writes_the_table_is_refused(rig: Rig) -> None:
    with pytest.raises(InputError, match="writes 'table', which is shared"):
        plant(lambda: [rig.table.add_(1), None][1], {"table": rig.table})
    rig.table.fill_(OLD)
    refused(rig, lambda: [rig.table.fill_(OLD), None][1], r"writes table\[0:8\], which is shared")


def test_a_stream_that_does_not_belong_to_the_capture_is_refused(rig: Rig) -> None:
    def fn() -> Tensor:
        with torch.cuda.stream(rig.side):
            return rig.table + 1

    refused(rig, fn, "runs on a stream that the capture does not know")


def test_a_read_on_the_host_is_refused(rig: Rig) -> None:
    pinned = torch.ones(4).pin_memory()
    with pytest.raises(InputError, match="reads a shared tensor on the host, where no graph replays it"):
        plant(lambda: pinned + 1, [pinned], device="cuda")
    planted = plant(lambda: pinned.to("cuda", non_blocking=True) + 1, [pinned], device="cuda")
    assert planted.boundary.after.name == "memcpy"
    pinned.fill_(5)
    planted.replay(rig.forward, 1)
    torch.cuda.synchronize()
    assert planted.output.tolist() == [6.0] * 4
