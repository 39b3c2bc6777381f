"""A fence in a graph that torch's dispatcher knows nothing of: paged attention in Triton, compiled layers, cuBLAS.

    python examples/paged_attention.py

It captures the step as an engine does, asks the driver who reads the page table, measures the same by overwriting the table
inside copies of the graph, plants the marker, and holds the graph at three gates: the scheduler's write lands behind the last
read, while the layers above it have yet to run. Needs a CUDA device, Triton and `cuda-bindings`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs from a bare checkout

from warfence.core.backend import FORWARD, SCHEDULE
from warfence.parity.graph import landed_at
from warfence_torch import plant_graph, read_graph
from warfence_torch.backend import TorchBackend

ROWS, WIDTH, COLUMNS, PAGES, LAYERS, ATTENDING = 8, 512, 16, 256, 8, 4


try:
    import triton
    import triton.language as tl
except ImportError:
    print("this example needs Triton and a CUDA device: pip install triton", file=sys.stderr)
    sys.exit(2)


@triton.jit
def paged(table, kv, q, out, D: tl.constexpr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """Each program attends with one row of q to the N pages that its row of the table names."""
    row, d = tl.program_id(0), tl.arange(0, D)
    query, acc = tl.load(q + row * D + d), tl.zeros((D,), tl.float32)
    for i in range(N):
        key = tl.load(kv + tl.load(table + row * N + i) * D + d)
        acc += key * tl.sum(key * query)
    tl.store(out + row * D + d, acc * 1e-3)


def attend(table: Tensor, kv: Tensor, q: Tensor) -> Tensor:
    """q (ROWS, WIDTH) attends to the pages that the table (ROWS, COLUMNS; int32) names."""
    out = torch.empty_like(q)
    paged[(ROWS,)](table, kv, q, out, WIDTH, COLUMNS)
    return out


def main() -> int:
    """Capture, read, measure, plant, hold."""
    if not torch.cuda.is_available():
        print("this example needs a CUDA device; torch.cuda.is_available() is False", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    table = torch.randint(0, PAGES, (ROWS, COLUMNS), dtype=torch.int32, device="cuda")
    kv, x = torch.randn(PAGES, WIDTH, device="cuda"), torch.randn(ROWS, WIDTH, device="cuda")
    weights = [torch.randn(WIDTH, WIDTH, device="cuda") * 0.04 for _ in range(LAYERS)]
    layer = torch.compile(lambda h, w: torch.tanh(h @ w) + torch.nn.functional.gelu(h) * 0.1)

    def step() -> Tensor:
        h = x
        for i, w in enumerate(weights):
            if i < ATTENDING:  # the layers above see no page any more
                h = h + attend(table, kv, h)
            h = layer(h, w)
        return h

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.no_grad(), torch.cuda.graph(graph, stream=stream):
        logits = step()

    print("What the driver says:")
    for line in read_graph(graph, {"page_table": table}).lines():
        print(f"  {line}")
    planted = plant_graph(graph, {"page_table": table}, logits, gated=True)
    print("What overwriting the table says:")
    print(f"  {planted.report()[-2]}")
    backend = TorchBackend("cuda")
    schedule = backend.lane(SCHEDULE)

    def write() -> None:
        with schedule.current:
            table[0].add_(0)

    at = landed_at(planted, backend.lane(FORWARD), schedule, write)
    print(f"Held at its gates, of which there are {planted.gates.positions if planted.gates else ()}:")
    print(f"  the scheduler's write lands while the graph stands '{at}'")
    backend.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
