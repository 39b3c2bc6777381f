"""A planted function as one CUDA graph, with an external event node where the shared reads end.

Reads on side streams: the last read of each stream is followed by an event of the capture (an edge, no node), and a small
stream of its own waits for them all and records the marker. Recorded on the capturing stream instead, the marker would
need these edges there, and they would delay what the function does next.
"""

from __future__ import annotations

from typing import Any

import torch

from warfence.core.errors import InputError
from warfence.parity.boundary import Boundary
from warfence_torch.lanes_cuda import CudaEventSource, CudaLane
from warfence_torch.tools.capture import capturing
from warfence_torch.tools.planting.planted import Planted
from warfence_torch.tools.planting.trace import Pass, Subject, Traced


class CudaPlanted(Planted):
    """`Planted` on a stream. `output` lies in the graph's memory pool."""

    def __init__(
        self, subject: Subject, boundary: Boundary, trace: list[Traced], stream: torch.cuda.Stream, pool: object,
        notes: list[str],
    ) -> None:  # fmt: skip
        self._source = CudaEventSource(torch.cuda.Event(external=True))
        self.graph = graph = torch.cuda.CUDAGraph()
        self._replay = graph.replay
        planter = Planter(boundary, stream, self._source.event)
        output = _capture(graph, Pass(subject, trace, planter.behind), planter, stream, pool)
        super().__init__(boundary, output, [*notes, *planter.notes])

    def replay(self, lane: CudaLane, launch: int) -> None:
        before = lane.recorded(launch) if self.boundary.after is None else None
        with lane.current:
            self._replay()
        self._marker.issued(launch, before or self._source.armed(launch))


class Planter:
    """Records the marker while the function is captured: behind the last shared read of every stream."""

    def __init__(self, boundary: Boundary, stream: torch.cuda.Stream, marker: torch.cuda.Event) -> None:
        self.notes: list[str] = []
        self._stream, self._marker = stream, marker
        self._after = boundary.after.position if boundary.after is not None else None
        self._reading = {op.position for op in (*boundary.reads, *boundary.unseen)}
        self._ends: dict[int, torch.cuda.Event] = {}  # by stream, behind its last read so far
        self._joined: torch.cuda.Stream | None = None

    def behind(self, position: int) -> None:
        """Called right behind each operation, with the operation's stream as the current one."""
        if not torch.cuda.is_current_stream_capturing():
            raise InputError(
                f"operation {position} ran on a stream that the capture does not know, so no replay does it again; "
                f"let that stream wait for the capturing one first: side.wait_stream(torch.cuda.current_stream())"
            )
        if position not in self._reading:
            return
        current = torch.cuda.current_stream()
        end = self._ends[current.cuda_stream] = torch.cuda.Event()
        end.record(current)
        if position == self._after:
            self._plant()

    def join(self) -> None:
        """Called at the end of the capture: no stream may be left outside."""
        if self._joined is not None:
            self._stream.wait_stream(self._joined)

    def _plant(self) -> None:
        if set(self._ends) == {self._stream.cuda_stream}:
            self._marker.record(self._stream)
            return
        self._joined = torch.cuda.Stream()
        for end in self._ends.values():
            self._joined.wait_event(end)
        self._marker.record(self._joined)
        self.notes.append(f"the reads end on {len(self._ends)} streams; the marker stands behind all of them")


def _capture(graph: torch.cuda.CUDAGraph, run: Pass, planter: Planter, stream: torch.cuda.Stream, pool: object) -> Any:
    """What the function returned while it was captured. InputError with the last operation when CUDA refuses."""
    refused: InputError | None = None
    output: Any = None
    try:
        with capturing(graph, stream, pool):
            try:
                output = run.run()
                planter.join()
            except InputError as error:
                refused = error
    except RuntimeError as error:
        if refused is None:
            raise InputError(f"the function cannot be captured; CUDA refused {run.where()}: {error}") from error
    finally:
        if refused is not None:  # says more than whatever ending a broken capture raises
            raise refused
    return output
