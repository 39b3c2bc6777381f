"""A planted function without CUDA: the lane's thread runs it, and completes the event where the reads end.

Nothing is replayed from a record: Python runs again, so each run is held against the first pass.
"""

from __future__ import annotations

import contextvars
from collections.abc import Mapping
from functools import partial
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

from warfence.core.errors import StageError
from warfence.host.lanes import HostEvent, WorkerLane
from warfence.parity.boundary import Boundary, find
from warfence_torch.tools.accesses import tensors
from warfence_torch.tools.planting.check_host import checked
from warfence_torch.tools.planting.planted import Planted, refuse_hidden, refuse_view
from warfence_torch.tools.planting.trace import Pass, Subject, Traced

LIMITS = "not seen: what another thread reads, where overwriting the tables behind the marker changed nothing by chance"


def plant_host(subject: Subject, shared: Mapping[str, Tensor]) -> HostPlanted:
    """Trace it, run it again as it is, and once more in a thread with the tables overwritten behind the boundary."""
    first = Pass(subject)
    output = first.run()
    found = find(t.operation for t in first.seen)  # refuses writes, before anything runs again
    refuse_view(output, subject.shared)
    refuse_hidden(output)
    boundary, output, notes = checked(subject, shared, first, found)
    return HostPlanted(subject, boundary, first.seen, output, [*_declared(subject, first.seen), *notes, LIMITS])


class HostPlanted(Planted):
    """`Planted` on a worker lane. `output` is that of the last pass before; later runs are copied into it.

    Context variables have the values that they had when it was planted.
    """

    def __init__(
        self, subject: Subject, boundary: Boundary, trace: list[Traced], output: Any, notes: list[str]
    ) -> None:
        super().__init__(boundary, output, notes)
        self._subject, self._trace = subject, trace
        self._event = HostEvent()
        self._context = contextvars.copy_context()

    def replay(self, lane: WorkerLane, launch: int) -> None:
        lane.check()
        if self.boundary.after is None:
            source = lane.record(launch).source
            lane.submit(partial(self._context.run, self._run, launch, None, 0))
            self._marker.issued(launch, source)
            return
        generation = self._event.arm(launch)
        lane.submit(partial(self._context.run, self._run, launch, self.boundary.after.position, generation))
        # After a failure the marker is never reached; complete it all the same, so that no lane hangs on it. At the end of
        # the function, where it stands if something reads that the trace does not see, this is the marker.
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


def _declared(subject: Subject, trace: list[Traced]) -> list[str]:
    """What the user declared, and whether it came up."""
    names = {t.operation.name for t in trace}

    def seen(name: str) -> bool:
        return any(n.startswith(name.replace("::", ".") + ".") for n in names)

    return [
        f"declared by the user: {name} reads {d.reads}, writes {d.writes}" + ("" if seen(name) else " (never came up)")
        for name, d in subject.declared.items()
    ]
