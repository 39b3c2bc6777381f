"""What is particular to CUDA: streams, events inside graphs, pinned staging, gates without an SM. Runs on a GPU only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from warfence.core.backend import FORWARD, PLAN, SCHEDULE, ArraySpec
from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import START, ForwardProgram, Stage
from warfence.serve.fixture import Fixture
from warfence_torch.backend import TorchBackend
from warfence_torch.kernels import KERNELS
from warfence_torch.staging import DEPTH

pytestmark = pytest.mark.gpu


def test_lanes_have_streams_of_their_own() -> None:
    backend = TorchBackend("cuda")
    handles = {backend.lane(name).stream.cuda_stream for name in (SCHEDULE, FORWARD, "plan")}
    assert len(handles) == 3
    backend.close()


def test_a_graph_arms_its_event_anew_at_each_replay() -> None:
    """The premise of IN_GRAPH, on the device itself: held behind the node the event is done, held before it is not."""
    from warfence_torch.gates_cuda import CudaGates

    stream, event = torch.cuda.Stream(), torch.cuda.Event(external=True)
    gates = CudaGates(("before", "behind"))
    x = torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        gates.capture("before", stream)
        x.add_(1)
        event.record(stream)
        gates.capture("behind", stream)
        x.add_(1)
    for _ in range(3):
        gates.close("before")
        gates.close("behind")
        with torch.cuda.stream(stream):
            graph.replay()
        gates.await_reached("before")
        assert not event.query()
        gates.open("before")
        gates.await_reached("behind")
        event.synchronize()
        assert not stream.query()
        gates.open_all()
        stream.synchronize()
    assert x.tolist() == [6.0] * 4


def test_the_watchdog_opens_a_gate_that_nobody_opens() -> None:
    from warfence_torch.gates_cuda import CudaGates

    gates, stream = CudaGates(("only",), watchdog_s=0.2), torch.cuda.Stream()
    gates.close("only")
    gates.capture("only", stream)
    stream.synchronize()
    assert gates.watchdog_fired == ["only"]


def test_a_pinned_slot_is_refilled_only_after_its_copy() -> None:
    """Law 12: with the stream held, more uploads than the ring is deep must not overwrite what is still to be copied."""
    from warfence_torch.gates_cuda import CudaGates
    from warfence_torch.staging import PinnedRing

    ring, stream, gates = PinnedRing(4, depth=2), torch.cuda.Stream(), CudaGates(("hold",), watchdog_s=0.2)
    targets = [torch.zeros(4, dtype=torch.int32, device="cuda") for _ in range(4)]
    torch.cuda.synchronize()
    gates.close("hold")
    gates.capture("hold", stream)
    with torch.cuda.stream(stream):
        for i, target in enumerate(targets):  # the third upload blocks until the watchdog opens the gate
            ring.upload(np.full(4, i, np.int32), target, stream)
    stream.synchronize()
    assert [t.tolist() for t in targets] == [[i] * 4 for i in range(4)]


def test_every_op_gives_the_same_when_captured(case: Any, run: Any, world: Any) -> None:
    """Captured as a stage is, after one warm-up run whose effects on the state are taken back."""
    expected, after = run(case)
    arrays = {**world, **case.own}
    env = {n: torch.tensor(arrays[n]).cuda() for n in case.sees}
    kernel, stream, graph = KERNELS[case.op], torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.inference_mode():
        with torch.cuda.stream(stream):
            kernel(env, case.attrs)
        torch.cuda.synchronize()
        for name in case.state:
            env[name].copy_(torch.tensor(arrays[name]))
        with torch.cuda.graph(graph, stream=stream):
            given = kernel(env, case.attrs)
        torch.cuda.synchronize()
        graph.replay()
        torch.cuda.synchronize()
    for name, array in {**expected, **after}.items():
        seen = (given if name in given else env)[name].cpu().numpy()
        np.testing.assert_allclose(seen, array, rtol=1e-4, atol=1e-4, err_msg=name)


def test_a_broken_decoder_says_the_same(decode: Any) -> None:
    """The marker stands in the first of three segments."""
    whole = decode("cuda")
    broken = decode("cuda", ("layer.0", "layer.1"), "layer.0")
    for (seen, _), (expected, _) in zip(broken, whole, strict=True):
        for name, array in expected.items():
            np.testing.assert_array_equal(seen[name], array)


@pytest.mark.parametrize(("marker_after", "held_at"), [("b", "c"), ("c", "c")])  # in the first segment, in the last
def test_the_marker_opens_the_fence_from_any_segment(marker_after: str, held_at: str) -> None:
    """The schedule lane's write lands while the forward stands behind its marker, not before."""
    fixture, layout = Fixture(TorchBackend("cuda"), {"t": ArraySpec((4, 2))}), BatchLayout(1, 1)
    stages = tuple(
        Stage(n, region, "mix", reads=("t",), takes=("req_pool_indices",), gives=("mix",),
              attrs={"tables": ("t",), "column": 0})
        for n, region in {"a": Region.LOAD_BATCH, "b": Region.REPLAY, "c": Region.REPLAY, "d": Region.TAIL}.items()
    )  # fmt: skip
    program = ForwardProgram("p", ForwardMode.DECODE, layout, stages, ("mix",), breaks=("b",))
    forward, schedule = fixture.forward(program, marker_after, gated=True), fixture.schedule
    batch = pack(layout, [BatchRow(1, 0, (0,), (0,), False, 0.0, 1.0, ())])
    for launch in (1, 2):
        for gate in (START, held_at):
            forward.gates.close(gate)
        outputs = fixture.launch(forward, batch, launch)
        schedule.wait(forward.marker.ticket(launch))
        fixture.write("t", [2], [launch])
        forward.gates.await_reached(START)
        assert not schedule.settle(0.5)
        forward.gates.open(START)
        forward.gates.await_reached(held_at)
        assert schedule.settle(5.0)
        forward.gates.open_all()
        assert outputs.result()["mix"].tolist() == [1 + launch]  # the tail reads once more, behind the write
    fixture.close()


def test_a_launch_says_how_long_it_took_on_the_device(decode: Any) -> None:
    seconds = [device_s for _, device_s in decode("cuda")]
    assert all(0 < s < 5 for s in seconds), seconds


def test_slots_and_their_events_are_used_again() -> None:
    """A step allocates nothing: two launches are unread at a time, so the slots made beforehand are enough."""
    fixture, layout = Fixture(TorchBackend("cuda"), {"t": ArraySpec((4, 2))}), BatchLayout(1, 1)
    stages = tuple(
        Stage(n, region, "mix", takes=("req_pool_indices",), gives=("mix",), attrs={"tables": (), "column": 0})
        for n, region in zip("abc", Region, strict=True)
    )
    forward = fixture.forward(ForwardProgram("p", ForwardMode.DECODE, layout, stages, ("mix",)))
    unread: list[Any] = []
    for launch in range(1, 9):
        batch = pack(layout, [BatchRow(launch % 4, 0, (0,), (0,), False, 0.0, 1.0, ())])
        unread.append(fixture.launch(forward, batch, launch))
        if len(unread) == 2:
            outputs = unread.pop(0)
            assert outputs.device_s is None
            assert outputs.result()["mix"].tolist() == [outputs.launch % 4]
            assert outputs.device_s > 0
    unread.pop().result()
    assert len(forward._slots._free) == DEPTH - 1  # one is in hand for the next launch
    fixture.close()


def test_two_lanes_write_a_table_through_words_of_their_own() -> None:
    """Both writes are enqueued while both lanes are held: were the words shared, one would scatter the other's."""
    from warfence_torch.gates_cuda import CudaGates

    backend, n = TorchBackend("cuda"), 1000
    tables = backend.tables({"t": ArraySpec((2, n))})
    lanes = [backend.lane(name) for name in (SCHEDULE, PLAN)]
    cells = np.arange(n, dtype=np.int32)
    for turn in range(1, 6):
        gates = CudaGates(("hold",))
        gates.close("hold")
        for lane in lanes:
            gates.capture("hold", lane.stream)
        for i, lane in enumerate(lanes):
            tables.write(lane, "t", cells + i * n, cells + 10_000 * turn + i)
        gates.open("hold")  # both run at a time
        assert tables.snapshot_to_host("t").tolist() == [(cells + 10_000 * turn + i).tolist() for i in range(2)]
    assert len({words.device_words.data_ptr() for words in tables._staging.values()}) == 2
    backend.close()
