"""A planted function without CUDA: the lane's thread runs it, and completes the event where the reads end.

Nothing is replayed from a record: Python runs again, so each run is held against the first pass.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from torch.utils._pytree import tree_leaves

from warfence.core.errors import StageError
from warfence.host.lanes import HostEvent, WorkerLane
from warfence.parity.boundary import Boundary
from warfence_torch.tools.accesses import tensors
from warfence_torch.tools.planting.planted import Planted
from warfence_torch.tools.planting.trace import Pass, Subject, Traced


class HostPlanted(Planted):
    """`Planted` on a worker lane. `output` is that of the last pass before; later runs are copied into it."""

    def __init__(
        self, subject: Subject, boundary: Boundary, trace: list[Traced], output: Any, notes: list[str]
    ) -> None:
        super().__init__(boundary, output, notes)
        self._subject, self._trace = subject, trace
        self._event = HostEvent()

    def replay(self, lane: WorkerLane, launch: int) -> None:
        lane.check()
        if self.boundary.after is None:
            source = lane.record(launch).source
            lane.submit(partial(self._run, launch, None, 0))
            self._marker.issued(launch, source)
            return
        generation = self._event.arm(launch)
        lane.submit(partial(self._run, launch, self.boundary.after.position, generation))
        # After a failure the marker is never reached; complete it all the same, so that no lane hangs on it.
        lane.submit(lambda: self._event.complete(generation), always=True)
        self._marker.issued(launch, self._event)

    # -- on the lane's thread

    def _run(self, launch: int, marker_at: int | None, generation: int) -> None:
        def behind(position: int) -> None:
            if position == marker_at:
                self._event.complete(generation)

        run = Pass(self._subject, self._trace, behind)
        try:
            out = run.run()
            for static, new in zip(tensors(tree_leaves(self.output)), tensors(tree_leaves(out)), strict=True):
                if static.data_ptr() != new.data_ptr():
                    static.copy_(new)
        except Exception as error:
            raise StageError(launch, run.where(), error) from error
