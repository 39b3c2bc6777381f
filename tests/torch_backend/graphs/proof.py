"""Proves a planted graph on the device: other values behind its ticket change nothing, before it they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from warfence.core.backend import FORWARD, SCHEDULE
from warfence_torch import plant_graph
from warfence_torch.backend import TorchBackend
from warfence_torch.tools.graphs.plant import BEFORE, BEHIND
from warfence_torch.tools.other_values import bits, wrong_values

BOUND_S = 5.0


def captured(fn: Any, warm_up: int = 3) -> tuple[torch.cuda.CUDAGraph, Any]:
    """A graph of the function as an engine captures it, and its output."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), torch.no_grad():
        for _ in range(warm_up):
            fn()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.no_grad(), torch.cuda.graph(graph, stream=stream):
        output = fn()
    torch.cuda.synchronize()
    return graph, output


def proved(graph: Any, shared: Mapping[str, Tensor], output: Any, state: Any = ()) -> Any:
    """The planted graph, gated, if it holds: held behind the marker a write lands and no result changes; held before the
    last read a write that does not wait changes a result. AssertionError otherwise.
    """
    planted = plant_graph(graph, shared, output, state=state, gated=True)
    results = [*tree_leaves(output), *tree_leaves(state)]
    before = [(t, t.clone()) for t in (*shared.values(), *results)]
    wrong = wrong_values(shared, None)
    backend = TorchBackend("cuda")
    forward, schedule = backend.lane(FORWARD), backend.lane(SCHEDULE)

    def overwrite() -> None:
        with schedule.current:
            for name, table in shared.items():
                table.copy_(wrong[name])

    def launch(number: int, held_at: str | None, fenced: bool) -> list[Tensor]:
        for t, value in before:
            t.copy_(value)
        torch.cuda.synchronize()
        if held_at is not None:
            planted.gates.close(held_at)
        planted.replay(forward, number)
        try:
            if held_at is not None:
                planted.gates.await_reached(held_at)
                if fenced:
                    schedule.wait(planted.ticket(number))
                overwrite()
                assert schedule.settle(BOUND_S), f"the write did not land while the graph stood at '{held_at}'"
        finally:
            planted.gates.open_all()
        torch.cuda.synchronize()
        assert not planted.gates.watchdog_fired
        return [bits(t) for t in results]

    def same(one: list[Tensor], other: list[Tensor]) -> bool:
        return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))

    try:
        with torch.no_grad():
            right = launch(1, None, False)
            assert same(launch(2, BEHIND, True), right), "a write behind the ticket changed a result"
            assert not same(launch(3, BEFORE, False), right), "a write before the last read changed nothing"
            for t, value in before:
                t.copy_(value)
            torch.cuda.synchronize()
    finally:
        backend.close()
    return planted
