"""What the marker in any captured graph costs and how long it takes to find, on a CUDA device; prints a page in Markdown.

    python benchmarks/graphs.py > docs/results/DATE-DEVICE-graphs.md

Of each program: the nodes, seconds for `read_graph` and for `measure_graph` with its launches, the replay of the planted graph
over that of the same graph without the node (medians of one run, in turn), and the proof: held behind the marker a write lands
and changes no result, before the last read it does. Then compiled functions: planted over their own graph, and calls after
`plant` and after `watch` over those before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import date
from statistics import median
from typing import Any

import torch
from torch import Tensor

from tests.torch_backend.graphs.proof import captured, proved
from tests.torch_backend.graphs.real import NAMES, paged_step, static_step
from tests.torch_backend.graphs.test_graphs_cuda import Step, cupy_rows, flex_rows, numba_rows, standalone_rows
from warfence.core.backend import FORWARD
from warfence_torch import measure_graph, plant, plant_graph, read_graph, watch
from warfence_torch.backend import TorchBackend
from warfence_torch.tools.graphs.copies import Copy
from warfence_torch.tools.graphs.driver import raw_graph
from warfence_torch.tools.graphs.nodes import list_nodes

ROUNDS, REPLAYS, CALLS = 11, 30, 200
Program = tuple[Callable[[], Any], dict[str, Tensor], Any]


def chain(length: int) -> Program:
    """As many small kernels, of which one at three quarters is the last to read the table."""
    table = torch.randperm(256, device="cuda")
    x = torch.randn(256, 256, device="cuda")

    def fn() -> Tensor:
        h = x
        for i in range(length):
            h = h[table] if i in (0, 3 * length // 4) else h + 1
        return h

    return fn, {"table": table}, ()


def side_streams() -> Program:
    step, side = Step(), torch.cuda.Stream()

    def fn() -> Tensor:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            theirs = step.kv[step.table[0].long()] * 2
        ours = step.kv[step.table[1].long()].sin()
        torch.cuda.current_stream().wait_stream(side)
        return ours + theirs

    return fn, step.shared, ()


def programs() -> Iterator[tuple[str, Callable[[], Program]]]:
    for compiled in (False, True):
        step = Step(compiled)
        yield (
            f"Triton paged attention and cuBLAS, {'compiled' if compiled else 'eager'}",
            lambda s=step: (s, s.shared, ()),
        )
    for make in (cupy_rows, numba_rows, standalone_rows, flex_rows):
        step = Step()
        yield make.__name__.replace("_rows", " kernel"), lambda s=step, m=make: (m(s.table, s.kv), s.shared, ())
    yield "two streams", side_streams
    for length in (1000, 2000):
        yield f"chain of {length}", lambda n=length: chain(n)
    for name in NAMES:
        yield f"{name}, static cache, eager", lambda n=name: static_step(n)
        yield f"{name}, paged table, eager", lambda n=name: paged_step(n, False)
    yield f"{NAMES[0]}, paged table, compiled", lambda: paged_step(NAMES[0], True)


def timed(launch: Callable[[], None]) -> float:
    """Milliseconds of the device for one launch, of many in a row."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(REPLAYS):
        launch()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / REPLAYS


def in_turn(one: Callable[[], None], other: Callable[[], None]) -> tuple[float, float]:
    """Median milliseconds of the first, and the median ratio of the first to the second."""
    pairs = []
    for i in range(ROUNDS):
        first = timed(one) if i % 2 else None
        b = timed(other)
        a = first if first is not None else timed(one)
        pairs.append((a, b))
    return median(a for a, _ in pairs), median(a / b for a, b in pairs)


def replay_ratio(graph: Any, shared: dict[str, Tensor], stream: torch.cuda.Stream, lane: Any) -> tuple[float, float]:
    bare, planted = Copy(list_nodes(raw_graph(graph))), plant_graph(graph, shared)
    bare.instantiate()
    return in_turn(lambda: planted.replay(lane, 1), lambda: bare.launch(stream))


def row(name: str, make: Callable[[], Program]) -> str:
    fn, shared, state = make()
    graph, output = captured(fn)
    begun = time.perf_counter()
    found = read_graph(graph, shared)
    read_s = time.perf_counter() - begun
    begun = time.perf_counter()
    measured = measure_graph(graph, shared, output, state=state)
    measured_s = time.perf_counter() - begun
    proved(graph, shared, output, state)
    backend = TorchBackend("cuda")
    lane = backend.lane(FORWARD)
    with torch.cuda.stream(lane.stream):
        ms, ratio = replay_ratio(graph, shared, lane.stream, lane)
    backend.close()
    at = " and ".join(str(op.position) for op in found.boundary.last)
    seen = " and ".join(map(str, measured.measured.last))
    return (
        f"| {name} | {len(found.nodes)} | {at} | {seen} | {read_s * 1e3:.1f} | {measured_s * 1e3:.0f} | {measured.launches} | "
        f"{ms:.4f} | {ratio:.3f} | yes |"
    )


def calls(fn: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(CALLS):
        fn()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / CALLS * 1e6


def compiled_rows() -> Iterator[str]:
    step = Step()
    whole = torch.compile(
        lambda: torch.stack([torch.tanh(step.kv[step.table.long()].sum(1) @ w) for w in step.weights]).sum(0)
    )
    with torch.no_grad():
        for _ in range(3):
            whole()
        before = median(calls(whole) for _ in range(9))
        own, _ = captured(whole)
        planted = plant(whole, step.shared)
        _, ratio = in_turn(lambda: planted.graph.replay(), lambda: own.replay())
        yield f"| planted compiled function / its own graph | {ratio:.3f} |"
        yield f"| calls of it after `plant` / before | {median(calls(whole) for _ in range(9)) / before:.3f} |"
        with watch(shared=step.shared):
            whole()
        yield f"| calls of it after `watch` / before | {median(calls(whole) for _ in range(9)) / before:.3f} |"


def main() -> None:
    import triton

    print(f"# Any CUDA graph: found, measured, planted\n\n{__doc__.splitlines()[0]}\n")
    device = torch.cuda.get_device_name()
    print(
        f"{date.today()}, {device}, torch {torch.__version__}, triton {triton.__version__}, `python benchmarks/graphs.py`.\n"
    )
    print("| program | nodes | last reader found | measured | read_graph ms | measure_graph ms | launches | replay ms |"
          " planted / plain | proved |")  # fmt: skip
    print("| --- " * 10 + "|")
    for name, make in programs():
        try:
            print(row(name, make), flush=True)
        except BaseException as error:  # one that this machine lacks is a row, too
            said = str(error).splitlines()[0][:160] if str(error) else ""
            print(f"| {name} | {type(error).__name__}: {said} " + "| " * 9 + "|", flush=True)
    print("\n| compiled code | ratio |\n| --- | --- |")
    for line in compiled_rows():
        print(line, flush=True)


if __name__ == "__main__":
    main()
