"""Stage times on a GPU: timing events between the stages, inside the captured graphs.

Each replay records its graph's events anew, so what the launch before left in them would be lost: a timed forward is
captured twice, the launches take turns, and each one's times are taken when its results are. An event is a node of the
graph, so a timed forward is a little slower than a production one, which has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warfence.core.abilities import StageTime, Stamp
from warfence.core.backend import Marker
from warfence.core.batch import Batch
from warfence.core.modes import Region
from warfence.core.program import ForwardProgram, Gated, Step
from warfence.host.clock import HostClock
from warfence_torch.forward_cuda import CudaForward
from warfence_torch.gates_cuda import CudaGates
from warfence_torch.lanes_cuda import CudaEventSource, CudaLane, CudaWord
from warfence_torch.outputs_cuda import CudaOutputs

MakeMarker = Callable[[], "CudaEventSource | CudaWord | bool | None"]
COPIES = 2  # launch N is over, and its results are taken, before launch N+2 is issued
TRIES = 20  # to put the two clocks side by side; the quickest one counts


class TimedGraphs(CudaForward):
    """One copy of a timed forward: a timing event at the head of each segment and behind each of its steps."""

    def __init__(self, *given: Any) -> None:
        self._events: list[tuple[str, torch.cuda.Event]] = []  # in the order of a launch; the stage that ends there
        self.untimed: int | None = None  # the launch whose times are still in the events
        super().__init__(*given)

    def spans(self) -> Iterator[tuple[str, torch.cuda.Event, torch.cuda.Event]]:
        """(stage, begin, end) of the launch that is over."""
        for (_, begin), (stage, end) in pairwise(self._events):
            if stage:
                yield stage, begin, end

    def _run(self, region: Region, steps: tuple[Step, ...], capturing: bool) -> None:
        if capturing:
            self._record("", torch.cuda.current_stream())
        super()._run(region, steps, capturing)

    def _step(self, step: Step, stream: torch.cuda.Stream, capturing: bool) -> None:
        super()._step(step, stream, capturing)
        if capturing:
            self._record(step.name if step.stage is not None else "", stream)

    def _record(self, stage: str, stream: torch.cuda.Stream) -> None:
        event = torch.cuda.Event(enable_timing=True, external=True)
        event.record(stream)
        self._events.append((stage, event))


class TimedOutputs:
    """Implements `warfence.core.backend.Outputs`: the results, and with them the times."""

    def __init__(self, inner: CudaOutputs, take_times: Callable[[], None]) -> None:
        self.launch, self._inner, self._take_times = inner.launch, inner, take_times

    @property
    def device_s(self) -> float | None:
        return self._inner.device_s

    def result(self) -> Mapping[str, np.ndarray]:
        found = self._inner.result()
        self._take_times()
        return found


class TimedCudaForward:
    """Implements `warfence.core.backend.Forward`: copies of one forward that take turns."""

    def __init__(
        self, program: ForwardProgram, lane: CudaLane, copies: Sequence[TimedGraphs], timer: CudaTimer
    ) -> None:
        self.program = program
        self._lane, self._copies, self._timer = lane, copies, timer
        self._turn = 0

    @property
    def _current(self) -> TimedGraphs:
        return self._copies[self._turn % len(self._copies)]

    @property
    def marker(self) -> Marker | None:
        return self._current.marker

    @property
    def gates(self) -> CudaGates | None:
        """Of a gated forward, which has one copy."""
        return self._current.gates

    def load_batch(self, batch: Batch, launch: int) -> None:
        self._turn += 1
        current = self._current
        if current.untimed is not None:  # nobody asked for its results, so it may not be over
            self._lane.synchronize()
            self._timer.take(current)
        current.untimed = launch
        current.load_batch(batch, launch)

    def replay(self, launch: int) -> None:
        self._current.replay(launch)

    def tail(self, launch: int) -> TimedOutputs:
        current = self._current

        def take_times() -> None:
            if current.untimed == launch:
                self._timer.take(current)

        return TimedOutputs(current.tail(launch), take_times)


class CudaTimer(HostClock):
    """Implements `warfence.core.abilities.Timer`. Device times come from one event whose host time is known."""

    def __init__(self) -> None:
        self.about: Mapping[str, str] = {
            "clock": "the device's own clock on lanes, the host's monotonic clock on the host track",
            "slice": "a stage between two events of the captured graph; a wait or table write between two of its stream",
        }
        self._base = torch.cuda.Event(enable_timing=True)
        self._base_at = 0.0  # of the host, in microseconds
        self._taken: list[StageTime] = []

    def start(self) -> None:
        torch.cuda.synchronize()
        super().start()
        best = float("inf")
        for _ in range(TRIES):
            event = torch.cuda.Event(enable_timing=True)
            before = self.now()
            event.record()
            event.synchronize()
            after = self.now()
            if after - before < best:
                best, self._base, self._base_at = after - before, event, (before + after) / 2
        self.about = {**self.about, "between the clocks": f"known to {best / 2:.0f} us"}
        self._taken.clear()

    def before(self, lane: CudaLane) -> Stamp:
        event = torch.cuda.Event(enable_timing=True)
        event.record(lane.stream)
        return lambda: self._at(event)

    def after(self, lane: CudaLane) -> Stamp:
        return self.before(lane)

    def stages(self) -> list[StageTime]:
        return list(self._taken)

    def take(self, graphs: TimedGraphs) -> None:
        """Keep the times of a launch that is over, before its events are recorded again."""
        launch, graphs.untimed = graphs.untimed, None
        if self.unix_ns is not None and launch is not None:
            self._taken += [StageTime(launch, (s,), self._at(a), self._at(b)) for s, a, b in graphs.spans()]

    def forward(
        self, program: ForwardProgram, lane: CudaLane, fixed: Mapping[str, Tensor], make_marker: MakeMarker,
        marker_after: str | None, gated: Gated, pool: object,
    ) -> TimedCudaForward:  # fmt: skip
        """Capture one forward. make_marker: gives an external event for each copy; anything else where none is wanted.

        A gated forward has one copy: its gates belong to one graph, and who holds it there issues one launch at a time.
        """

        def capture() -> TimedGraphs:
            made = make_marker()
            source = made if isinstance(made, CudaEventSource | CudaWord) else None
            return TimedGraphs(program, lane, fixed, source, marker_after, gated, pool)

        copies = [capture() for _ in range(1 if gated else COPIES)]
        return TimedCudaForward(program, lane, copies, self)

    def _at(self, event: torch.cuda.Event) -> float:
        """Microseconds of an event that is over. Blocks for one that is not."""
        event.synchronize()
        since_ms: float = self._base.elapsed_time(event)
        return self._base_at + 1e3 * since_ms
