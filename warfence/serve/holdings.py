"""Who owns which request row and which slots, and the table writes that follow from it.

All writes of one flush go out as one scatter per table, on the schedule lane, or on the plan lane, which waits for the
schedule lane and so inherits the barrier that stands there (law 6). The schedule lane then waits for the plan lane: what
either of them writes later comes later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from warfence.core.backend import Lane, SharedTables
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.serve.pools import Pool
from warfence.serve.requests import Request


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes that the planner keeps to. rows and slots count the reserved index 0.

    window: keys that a sliding layer sees (None: no sliding layers). extend_rows: most requests in one EXTEND batch.
    block: tokens of a speculative verify (1: nothing speculates). mixed: decode rows ride along in a prefill batch.
    prefills_overlap: a prefill batch may be issued before the result of a prefill batch right before it is known.
    """

    context: int
    rows: int
    slots: int
    swa_slots: int
    chunk: int
    extend_rows: int
    window: int | None
    block: int = 1
    mixed: bool = False
    prefills_overlap: bool = True


@dataclass(slots=True)
class HoldingCounts:
    """What happened to slots; tests assert that it happened."""

    evictions: int = 0
    returned: int = 0  # slots given out for proposals that were not accepted
    writes: dict[str, int] = field(default_factory=dict)


class Holdings:
    """Rows and slots of requests, and pending table writes. Knows nothing of lanes but where it writes."""

    def __init__(self, limits: Limits, tables: SharedTables, schedule: Lane, plan: Lane | None = None) -> None:
        self.limits = limits
        self.rows = Pool("request rows", limits.rows)
        self.slots = Pool("KV slots", limits.slots)
        self.swa_slots = Pool("sliding KV slots", limits.swa_slots)
        self.counts = HoldingCounts()
        self._tables, self._schedule, self._plan = tables, schedule, plan
        self._pending: dict[str, dict[int, int]] = {}

    def flush(self, on_plan_lane: bool = False) -> None:
        """Enqueue the pending writes: one scatter per table."""
        if not self._pending:
            return
        lane = self._schedule
        if on_plan_lane and self._plan is not None:
            lane = self._plan
            lane.wait_lane(self._schedule)
        for name, cells in self._pending.items():
            n = len(cells)
            index = np.fromiter(cells.keys(), np.int32, n)
            self._tables.write(lane, name, index, np.fromiter(cells.values(), np.int32, n))
            self.counts.writes[name] = self.counts.writes.get(name, 0) + 1
        self._pending.clear()
        if lane is not self._schedule:
            self._schedule.wait_lane(lane)

    def room_for(self, n: int, *, whole: bool = False) -> bool:
        """Free slots for n positions; `whole`: of a new request, whose sliding layers hold at most window + chunk."""
        window = self.limits.window
        swa = n if window is None or not whole else min(n, window + self.limits.chunk)
        return self.slots.free_count >= n and (window is None or self.swa_slots.free_count >= swa)

    def missing(self, request: Request, reach: int) -> int:
        """How many slots the request needs to have one at every position below `reach` that the context has."""
        return max(0, min(reach, self.limits.context) - len(request.slots))

    def hold(self, request: Request, reach: int) -> None:
        """Give the request a slot at every position below `reach` that the context has."""
        for position in range(len(request.slots), min(reach, self.limits.context)):
            slot = self.slots.take()
            request.slots.append(slot)
            self._write(REQ_TO_TOKEN, request.row * self.limits.context + position, slot)
            if self.limits.window is not None:
                request.swa[position] = swa = self.swa_slots.take()
                self._write(FULL_TO_SWA, slot, swa)

    def evict(self, request: Request) -> None:
        """Free sliding slots that no query from here on can see. The forward in flight may still see the oldest."""
        if self.limits.window is None:
            return
        first_visible = request.cached - self.limits.window + 1
        for position in [p for p in request.swa if p < first_visible]:
            self._free_swa(request, position)
            self.counts.evictions += 1

    def trim(self, request: Request) -> None:
        """Take back the slots of proposals that were not accepted, but for what a launch in flight may yet write."""
        keep = request.cached + request.slack
        while len(request.slots) > keep:
            position = len(request.slots) - 1
            if position in request.swa:
                self._free_swa(request, position)
            self.slots.give(request.slots.pop())
            self.counts.returned += 1

    def free(self, request: Request) -> None:
        """Take back row and slots; they can be reused in the very next plan."""
        for position in list(request.swa):
            self._free_swa(request, position)
        for slot in request.slots:
            self.slots.give(slot)
        request.slots.clear()
        self.rows.give(request.row)
        request.row = request.cached = request.slack = 0

    def _free_swa(self, request: Request, position: int) -> None:
        self.swa_slots.give(request.swa.pop(position))
        self._write(FULL_TO_SWA, request.slots[position], 0)

    def _write(self, table: str, cell: int, value: int) -> None:
        self._pending.setdefault(table, {})[cell] = value  # a later write to the same cell replaces the earlier
