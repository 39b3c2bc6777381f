"""Stage times on worker lanes: a forward that looks at the clock around each call of a stage."""

from __future__ import annotations

import time
from collections.abc import Mapping

from torch import Tensor

from warfence.core.program import ForwardProgram, Gated, Step
from warfence.host.lane_times import WorkerTimer
from warfence.host.lanes import HostWord, WorkerLane
from warfence_torch.forward_host import Call, HostForward, Recorded


class TimedHostForward(HostForward):
    """A recorded forward that notes when its stages ran."""

    def __init__(
        self, timer: WorkerTimer, program: ForwardProgram, lane: WorkerLane, fixed: Mapping[str, Tensor],
        marker_after: str | None, gated: Gated, word: HostWord | None,
    ) -> None:  # fmt: skip
        self._timer = timer
        self._running = 0  # the launch that the lane's thread is at
        super().__init__(program, lane, fixed, marker_after, gated, word)

    def _call(self, step: Step, fixed: Mapping[str, Tensor]) -> Call:
        call = super()._call(step, fixed)
        if step.stage is None:
            return call

        def timed(workspace: dict[str, Tensor]) -> object:
            begin = time.perf_counter()
            given = call(workspace)
            self._timer.note(self._running, step.name, begin, time.perf_counter())
            return given

        return timed

    def _run(self, calls: Recorded, launch: int, generation: int = 0) -> None:
        self._running = launch
        super()._run(calls, launch, generation)


class HostTimer(WorkerTimer):
    """Implements `warfence.core.abilities.Timer`."""

    def forward(
        self, program: ForwardProgram, lane: WorkerLane, fixed: Mapping[str, Tensor], marker_after: str | None,
        gated: Gated, word: HostWord | None = None,
    ) -> TimedHostForward:  # fmt: skip
        return TimedHostForward(self, program, lane, fixed, marker_after, gated, word)
