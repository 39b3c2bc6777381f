"""A graph with its marker: what `plant` and `plant_graph` return on CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from warfence.parity.boundary import Boundary
from warfence_torch.gates_cuda import CudaGates
from warfence_torch.lanes_cuda import CudaEventSource, CudaLane
from warfence_torch.tools.planting.planted import Planted


class GraphPlanted(Planted):
    """`Planted` on a stream. `output` lies in the graph's memory. gates: those that hold it, where there are any."""

    def __init__(
        self, boundary: Boundary, output: Any, notes: list[str], event: torch.cuda.Event,
        launch: Callable[[torch.cuda.Stream], None], kept: tuple[Any, ...], gates: CudaGates | None = None,
    ) -> None:  # fmt: skip
        super().__init__(boundary, output, notes)
        self.gates = gates
        self.graph = next((one for one in kept if isinstance(one, torch.cuda.CUDAGraph)), None)
        self._source, self._launch, self._kept = CudaEventSource(event), launch, kept

    def replay(self, lane: CudaLane, launch: int) -> None:
        before = lane.recorded(launch) if self.boundary.after is None else None
        with lane.current:
            self._launch(lane.stream)
        self._marker.issued(launch, before or self._source.armed(launch))
