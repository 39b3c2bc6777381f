"""What is particular to CUDA: streams, events inside graphs, pinned staging, gates without an SM. Runs on a GPU only."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from warfence.backend import FORWARD, SCHEDULE

pytestmark = pytest.mark.gpu


def test_lanes_have_streams_of_their_own() -> None:
    from warfence_torch.backend import TorchBackend

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
