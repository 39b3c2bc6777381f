"""A captured forward without CUDA: recorded lists of stage calls that the forward lane's thread replays.

One list a region, or a segment of a region where the program breaks it; each is a piece of work of its own.

The marker is one persistent event, armed anew by each replay and completed by the lane between two stages, as an
external event node in a graph would be; or, for tickets by value, a word that the lane raises there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

import numpy as np
import torch
from torch import Tensor

from warfence.core.backend import Marker
from warfence.core.batch import Batch
from warfence.core.errors import StageError
from warfence.core.gates import HostGates
from warfence.core.modes import Region
from warfence.core.program import START, ForwardProgram, Gated, Step
from warfence.host.lanes import HostEvent, HostWord, WorkerLane
from warfence.host.stage_calls import bind
from warfence_torch.kernels import KERNELS
from warfence_torch.segments import segments
from warfence_torch.words import field_views

Call = Callable[[dict[str, Tensor]], object]
Recorded = list[tuple[str, Call]]  # a segment: the name of each step, and what it does


class HostOutputs:
    """Results of one launch; complete when the forward lane is past its tail."""

    def __init__(self, launch: int, lane: WorkerLane, names: tuple[str, ...]) -> None:
        self.launch = launch
        self.device_s: float | None = None
        self._lane, self._names = lane, names
        self._arrays: dict[str, np.ndarray] = {}
        self._done = HostEvent()
        self._generation = self._done.arm(launch)

    def fill(self, workspace: Mapping[str, Tensor], started: float) -> None:
        """The launch is over; it began at `started` by this thread's clock."""
        # Copies: an output may be a field of the batch, and the next launch loads its own over that.
        self._arrays = {n: workspace[n].numpy().copy() for n in self._names}
        self.device_s = time.perf_counter() - started

    def finish(self) -> None:
        self._done.complete(self._generation)

    def result(self) -> Mapping[str, np.ndarray]:
        self._done.await_generation(self._generation)
        if not self._arrays:
            self._lane.check()
        return self._arrays


class HostForward:
    """Implements `warfence.core.backend.Forward` on a worker lane."""

    def __init__(
        self,
        program: ForwardProgram,
        lane: WorkerLane,
        fixed: Mapping[str, Tensor],
        marker_after: str | None,
        gated: Gated,
        word: HostWord | None = None,
    ) -> None:
        self.program = program
        self.marker = Marker(marker_after, word) if marker_after is not None else None
        self._word = word
        self.gates = HostGates(program.gate_positions(gated)) if gated else None
        self._lane = lane
        self._marker_event = HostEvent()
        self._issued = word.count() if word is not None else 0  # launches whose replay was issued
        # Of the launch now running; only the lane's thread uses these.
        self._marker_generation = 0
        self._started = 0.0
        self._words = np.zeros(program.layout.words, np.int32)
        self._fields = field_views(program.layout, torch.from_numpy(self._words))
        self._workspace: dict[str, Tensor] = {}
        self._segments = {region: self._record(region, gated, fixed) for region in Region}  # the replay alone breaks

    def load_batch(self, batch: Batch, launch: int) -> None:
        self._lane.check()
        (load,) = self._segments[Region.LOAD_BATCH]

        def work() -> None:
            self._started = time.perf_counter()
            self._words[:] = batch.words
            self._workspace.clear()
            self._workspace.update(self._fields)
            self._run(load, launch)

        self._lane.submit(work)

    def replay(self, launch: int) -> None:
        self._lane.check()
        self._issued += 1
        generation = self._issued if self._word is not None else self._marker_event.arm(launch) if self.marker else 0

        for calls in self._segments[Region.REPLAY]:
            self._lane.submit(partial(self._run, calls, launch, generation))
        if self.marker is not None:
            # After a failure the marker is never reached; complete it all the same, so that no lane hangs on it.
            self._lane.submit(lambda: self._reached(generation), always=True)
            self.marker.issued(launch, self._marker_event)

    def tail(self, launch: int) -> HostOutputs:
        self._lane.check()
        outputs = HostOutputs(launch, self._lane, self.program.outputs)
        (tail,) = self._segments[Region.TAIL]

        def work() -> None:
            self._run(tail, launch)
            outputs.fill(self._workspace, self._started)

        self._lane.submit(work)
        self._lane.submit(outputs.finish, always=True)
        return outputs

    # -- recording

    def _record(self, region: Region, gated: Gated, fixed: Mapping[str, Tensor]) -> list[Recorded]:
        marker = self.marker.stage if self.marker is not None else None
        parts = segments(self.program.steps(region, marker, gated), self.program.breaks)
        return [[(step.name, self._call(step, fixed)) for step in part] for part in parts]

    def _call(self, step: Step, fixed: Mapping[str, Tensor]) -> Call:
        if step.stage is not None:
            return bind(step.stage, fixed, KERNELS)
        if step.kind == "marker":
            return lambda _: self._reached(self._marker_generation)
        gates = cast(HostGates, self.gates)
        return lambda _: gates.pass_through(step.name)

    # -- on the lane's thread

    def _reached(self, generation: int) -> None:
        """The marker of the launch with this generation, or value of the word, is reached."""
        if self._word is not None:
            self._word.raise_to(generation)
        else:
            self._marker_event.complete(generation)

    def _run(self, calls: Recorded, launch: int, generation: int = 0) -> None:
        self._marker_generation = generation
        stage = START
        try:
            with torch.inference_mode():
                for name, call in calls:
                    stage = name
                    call(self._workspace)
        except Exception as error:
            if self.gates is not None:
                self.gates.abort()
            raise StageError(launch, stage, error) from error
