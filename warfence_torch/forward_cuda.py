"""A forward captured as CUDA graphs, one a region, so that a fresh event can be recorded between two of them.

A replay with breaks is captured as several graphs, replayed in order: with one memory pool and one stream that is the
same as one.

Inside the replay graph the marker is an external event: a record node that every replay arms anew (torch >= 2.8). Open
question upstream: who keeps the event alive as long as the graph (pytorch #196919); here the forward holds both. For a ticket
by value it is a word that a node increments.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from warfence.core.backend import Marker
from warfence.core.batch import Batch
from warfence.core.errors import StageError
from warfence.core.modes import Region
from warfence.core.program import ForwardProgram, Gated, Step
from warfence.host.stage_calls import bind
from warfence_torch.gates_cuda import CudaGates
from warfence_torch.kernels import KERNELS
from warfence_torch.lanes_cuda import CudaEventSource, CudaLane, CudaWord
from warfence_torch.outputs_cuda import CudaOutputs, OutputKind, OutputSlots
from warfence_torch.segments import segments
from warfence_torch.staging import PinnedRing
from warfence_torch.tools.capture import capturing
from warfence_torch.tools.fresh import FreshStaging
from warfence_torch.words import field_views

WARM_UP_RUNS = 2


class CudaForward:
    """Implements `warfence.core.backend.Forward` on one stream."""

    def __init__(
        self, program: ForwardProgram, lane: CudaLane, fixed: Mapping[str, Tensor],
        marker: CudaEventSource | CudaWord | None,
        marker_after: str | None, gated: Gated, pool: object, make_staging: type[PinnedRing | FreshStaging] = PinnedRing,
    ) -> None:  # fmt: skip
        self.program = program
        word = marker if isinstance(marker, CudaWord) else None
        self.marker = Marker(marker_after, word) if marker is not None and marker_after is not None else None
        self.gates = CudaGates(program.gate_positions(gated)) if gated else None
        self._marker_source = marker
        self._lane = lane
        self._words = torch.zeros(program.layout.words, dtype=torch.int32, device="cuda")
        self._staging = make_staging(program.layout.words)
        self._workspace: dict[str, Tensor] = {}
        self._fixed = fixed
        self._output_kinds: list[OutputKind] = []
        self._out: Tensor = torch.empty(0)
        self._segments = {
            region: segments(program.steps(region, self.marker.stage if self.marker else None, gated), program.breaks)
            for region in Region
        }
        self._warm_up()
        self._workspace = field_views(self.program.layout, self._words)
        self._graphs = {region: [self._capture(region, s, pool) for s in self._segments[region]] for region in Region}
        self._slots = OutputSlots(self._out.numel())
        self._slot = self._slots.take()  # of the launch being issued, or of the next one

    def load_batch(self, batch: Batch, launch: int) -> None:
        stream = self._lane.stream
        self._slot.start.record(stream)
        with self._lane.current:
            self._staging.upload(batch.words, self._words, stream)
            self._replay_graphs(Region.LOAD_BATCH)

    def replay(self, launch: int) -> None:
        with self._lane.current:
            self._replay_graphs(Region.REPLAY)
        if self.marker is not None:
            event = self._marker_source
            self.marker.issued(launch, event.armed(launch) if isinstance(event, CudaEventSource) else None)

    def tail(self, launch: int) -> CudaOutputs:
        stream, slot = self._lane.stream, self._slot
        with self._lane.current:
            self._replay_graphs(Region.TAIL)
            slot.words.copy_(self._out, non_blocking=True)
        slot.end.record(stream)
        self._slot = self._slots.take()
        return CudaOutputs(launch, slot, self._slots, self._output_kinds)

    def _replay_graphs(self, region: Region) -> None:
        for graph in self._graphs[region]:
            graph.replay()

    # -- capture

    def _run(self, region: Region, steps: tuple[Step, ...], capturing: bool) -> None:
        """A segment of a region on the current stream. Warm-up runs plant nothing and pass no gate."""
        stream = torch.cuda.current_stream()
        for step in steps:
            self._step(step, stream, capturing)
        if region is Region.TAIL:
            outputs = [(n, self._workspace[n]) for n in self.program.outputs]
            self._output_kinds = [(n, tuple(t.shape), t.is_floating_point()) for n, t in outputs]
            self._out = torch.cat([t.reshape(-1).view(torch.int32) for _, t in outputs])

    def _step(self, step: Step, stream: torch.cuda.Stream, capturing: bool) -> None:
        if step.stage is not None:
            try:
                bind(step.stage, self._fixed, KERNELS)(self._workspace)
            except RuntimeError as error:
                raise StageError(0, step.name, error) from error
        elif capturing and step.kind == "marker" and self._marker_source is not None:
            self._marker_source.plant(stream)
        elif capturing and self.gates is not None:
            self.gates.capture(step.name, stream)

    def _warm_up(self) -> None:
        stream = self._lane.stream
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), torch.inference_mode():
            for _ in range(WARM_UP_RUNS):
                self._workspace = field_views(self.program.layout, self._words)
                for region in Region:
                    for steps in self._segments[region]:
                        self._run(region, steps, capturing=False)
        stream.synchronize()

    def _capture(self, region: Region, steps: tuple[Step, ...], pool: object) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), capturing(graph, self._lane.stream, pool):
            self._run(region, steps, capturing=True)
        return graph
