"""Host lanes under watch: the calls of `WorkerLane` and `HostEvent`, for any program that uses them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from warfence.host.lanes import HostEvent, Work, WorkerLane
from warfence.races.check.events import HOST, Event
from warfence_torch.tools.callers import caller_lines
from warfence_torch.tools.watching.journal import Journal
from warfence_torch.tools.watching.patches import Patches

STUCK_S = 10.0


class HostLanes:
    """Notes submits, records, waits and synchronisations. `make_mode` gives what sees the operations of one work."""

    def __init__(self, journal: Journal, make_mode: Callable[[], TorchDispatchMode]) -> None:
        self._journal = journal
        self._make_mode = make_mode
        self._lanes: dict[int, WorkerLane] = {}
        self._finished = 0  # pieces of work
        self._counting = threading.Lock()
        self._settled = WorkerLane.settle  # as it is without a watch

    def install(self, patches: Patches) -> None:
        patches.wrap(WorkerLane, "submit", self._submit)
        patches.wrap(WorkerLane, "synchronize", self._synchronize)
        patches.wrap(WorkerLane, "settle", self._settle)
        patches.wrap(HostEvent, "arm", self._arm)
        patches.wrap(HostEvent, "complete", self._complete)
        patches.wrap(HostEvent, "reached", self._awaited)
        patches.wrap(HostEvent, "await_generation", self._awaited)

    def drain(self) -> None:
        """Wait until every lane did what was submitted, with the patches still on. A lane's failure is its owner's.

        A lane that stands at a wait while nothing else moves is given up after STUCK_S, and the log says so.
        """
        self._journal.host_thread = None  # what this asks of lanes and events is not the program's
        finished, moved = self._finished, time.monotonic()
        while standing := [lane for lane in self._lanes.values() if not self._settled(lane, 0.0)]:
            if finished != self._finished:
                finished, moved = self._finished, time.monotonic()
            elif time.monotonic() - moved > STUCK_S:
                names = ", ".join(f"'{self._name(lane)}'" for lane in standing)
                self._journal.miss(
                    f"What is enqueued behind the wait at which lane {names} stood when the watch ended."
                )
                return
            time.sleep(1e-3)

    def _name(self, lane: WorkerLane) -> str:
        return self._journal.name(lane, lane.name)

    def _submit(self, original: Callable[..., None], lane: WorkerLane, work: Work, *, always: bool = False) -> None:
        self._lanes[id(lane)] = lane
        slot = self._journal.reserve(self._name(lane), caller_lines())
        mode = self._make_mode()

        def inside() -> None:
            try:
                with self._journal.inside(slot), mode:
                    work()
            finally:
                with self._counting:
                    self._finished += 1

        original(lane, inside, always=always)

    def _synchronize(self, original: Callable[..., None], lane: WorkerLane) -> None:
        original(lane)
        self._journal.waited(caller_lines(), other=self._name(lane))

    def _settle(self, original: Callable[..., bool], lane: WorkerLane, bound_s: float) -> bool:
        idle = original(lane, bound_s)
        if idle:
            self._journal.waited(caller_lines(), other=self._name(lane))
        return idle

    def _arm(self, original: Callable[..., int], event: HostEvent, launch: int) -> int:
        self._journal.name(event, "event ")  # numbered in the order of the calls
        return original(event, launch)

    def _complete(self, original: Callable[..., None], event: HostEvent, generation: int) -> None:
        slot, name = self._journal.slot, self._journal.name(event, "event ")
        if (slot is not None or self._journal.on_host) and self._journal.generation_is_new(name, generation):
            lane, place = (slot.lane, slot.where) if slot is not None else (HOST, caller_lines())
            self._journal.append(Event("record", lane, event=name, generation=generation, where=place))
        original(event, generation)

    def _awaited(self, original: Callable[..., bool], event: HostEvent, generation: int, *timeout: Any) -> bool:
        """A question that got yes, or a wait that ended: of a lane in its own work, else of the host."""
        reached = original(event, generation, *timeout)
        if reached:
            slot, name = self._journal.slot, self._journal.name(event, "event ")
            self._journal.waited(slot.where if slot is not None else caller_lines(), name, generation=generation)
        return reached
