"""A forward captured as CUDA graphs, one a region, so that a fresh event can be recorded between two of them.

Inside the replay graph the marker is an external event: a record node that every replay arms anew (torch >= 2.8). Open
question upstream: who keeps the event alive as long as the graph (pytorch #196919); here the forward holds both.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import torch
from torch import Tensor

from warfence.backend import Marker
from warfence.batch import FLOAT, Batch
from warfence.errors import StageError
from warfence.kernels import bind
from warfence.modes import Region
from warfence.program import ForwardProgram, Gated
from warfence_torch.gates_cuda import CudaGates
from warfence_torch.kernels import KERNELS
from warfence_torch.lanes_cuda import CudaEventSource, CudaLane
from warfence_torch.staging import PinnedRing

WARM_UP_RUNS = 2


class CudaOutputs:
    """Results of one launch in a pinned slot that no later launch uses before they were read."""

    def __init__(
        self, launch: int, words: Tensor, slots: list[Tensor], forward: CudaForward, event: torch.cuda.Event
    ) -> None:
        self.launch = launch
        self._words, self._slots, self._forward, self._event = words, slots, forward, event
        self._result: dict[str, np.ndarray] | None = None

    def result(self) -> Mapping[str, np.ndarray]:
        if self._result is None:
            self._event.synchronize()
            words = self._words.numpy().copy()
            self._result = {}
            for name, shape, is_float in self._forward.output_kinds:
                flat, words = words[: prod(shape)], words[prod(shape) :]
                self._result[name] = (flat.view(np.float32) if is_float else flat).reshape(shape)
            self._slots.append(self._words)  # the slot can serve another launch now
        return self._result


class CudaForward:
    """Implements `warfence.backend.Forward` on one stream."""

    def __init__(
        self, program: ForwardProgram, lane: CudaLane, fixed: Mapping[str, Tensor], marker: CudaEventSource | None,
        marker_after: str | None, gated: Gated, pool: object,
    ) -> None:  # fmt: skip
        self.program = program
        self._gated = gated
        self.marker = Marker(marker_after) if marker is not None and marker_after is not None else None
        self.gates = CudaGates(program.gate_positions(gated)) if gated else None
        self._marker_source = marker
        self._lane = lane
        self._words = torch.zeros(program.layout.words, dtype=torch.int32, device="cuda")
        self._staging = PinnedRing(program.layout.words)
        self._workspace: dict[str, Tensor] = {}
        self._fixed = fixed
        self._free_outputs: list[Tensor] = []
        self.output_kinds: list[tuple[str, tuple[int, ...], bool]] = []
        self._out: Tensor = torch.empty(0)
        self._warm_up()
        self._graphs = [self._capture(region, pool) for region in Region]

    def load_batch(self, batch: Batch, launch: int) -> None:
        stream = self._lane.stream
        with torch.cuda.stream(stream):
            self._staging.upload(batch.words, self._words, stream)
            self._graphs[Region.LOAD_BATCH].replay()

    def replay(self, launch: int) -> None:
        with torch.cuda.stream(self._lane.stream):
            self._graphs[Region.REPLAY].replay()
        if self.marker is not None and self._marker_source is not None:
            self.marker.issued(launch, self._marker_source.armed(launch))

    def tail(self, launch: int) -> CudaOutputs:
        stream = self._lane.stream
        words = (
            self._free_outputs.pop() if self._free_outputs else torch.empty_like(self._out, device="cpu").pin_memory()
        )
        with torch.cuda.stream(stream):
            self._graphs[Region.TAIL].replay()
            words.copy_(self._out, non_blocking=True)
        event = torch.cuda.Event()
        event.record(stream)
        return CudaOutputs(launch, words, self._free_outputs, self, event)

    # -- capture

    def _run(self, region: Region, capturing: bool) -> None:
        """The steps of a region on the current stream. Warm-up runs plant nothing and pass no gate."""
        marker = self.marker.stage if self.marker is not None else None
        stream = torch.cuda.current_stream()
        if region is Region.LOAD_BATCH:
            self._workspace.update(self._field_views())
        for step in self.program.steps(region, marker, self._gated):
            if step.stage is not None:
                try:
                    bind(step.stage, self._fixed, KERNELS)(self._workspace)
                except RuntimeError as error:
                    raise StageError(0, step.name, error) from error
            elif capturing and step.kind == "marker" and self._marker_source is not None:
                self._marker_source.event.record(stream)
            elif capturing and self.gates is not None:
                self.gates.capture(step.name, stream)
        if region is Region.TAIL:
            outputs = [(n, self._workspace[n]) for n in self.program.outputs]
            self.output_kinds = [(n, tuple(t.shape), t.is_floating_point()) for n, t in outputs]
            self._out = torch.cat([t.reshape(-1).view(torch.int32) for _, t in outputs])

    def _warm_up(self) -> None:
        stream = self._lane.stream
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), torch.inference_mode():
            for _ in range(WARM_UP_RUNS):
                for region in Region:
                    self._run(region, capturing=False)
        stream.synchronize()
        self._workspace.clear()

    def _capture(self, region: Region, pool: object) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(graph, pool=pool, stream=self._lane.stream):
            self._run(region, capturing=True)
        return graph

    def _field_views(self) -> dict[str, Tensor]:
        views = {}
        for name, f in self.program.layout.fields.items():
            flat = self._words[f.offset : f.offset + f.size]
            views[name] = (flat.view(torch.float32) if f.dtype == FLOAT else flat).view(f.shape)
        return views
