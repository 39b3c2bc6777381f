"""Plans the next batch on the host and writes its shared tables: admission, chunks, eviction, retraction, release.

All writes of one flush go out as one scatter per table, on the schedule lane. They may be enqueued at once, because the
barrier of the launch before stands in front of them on that lane.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from warfence.backend import Lane, SharedTables
from warfence.batch import BatchRow
from warfence.errors import InputError
from warfence.model.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.modes import ForwardMode
from warfence.pools import Pool
from warfence.requests import Phase, Request
from warfence.sampling import uniform


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes that the planner keeps to. rows and slots count the reserved index 0.

    window: keys that a sliding layer sees (None: no sliding layers). extend_rows: most requests in one EXTEND batch.
    """

    context: int
    rows: int
    slots: int
    swa_slots: int
    chunk: int
    extend_rows: int
    window: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """One planned launch. `emits[i]`: the token after row i is an output of its request (not an inner prompt chunk)."""

    mode: ForwardMode
    requests: tuple[Request, ...]
    rows: tuple[BatchRow, ...]
    emits: tuple[bool, ...]


@dataclass(slots=True)
class Counts:
    """What the planner had to do; tests assert that it happened."""

    retractions: int = 0
    evictions: int = 0
    later_chunks: int = 0
    writes: dict[str, int] = field(default_factory=dict)


class Planner:
    """Owns requests, pools and pending table writes. Knows nothing of lanes but the one it writes on."""

    def __init__(self, limits: Limits, tables: SharedTables, schedule: Lane) -> None:
        self.limits = limits
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.row_pool = Pool("request rows", limits.rows)
        self.slot_pool = Pool("KV slots", limits.slots)
        self.swa_pool = Pool("sliding KV slots", limits.swa_slots)
        self.counts = Counts()
        self._tables = tables
        self._schedule = schedule
        self._pending: dict[str, dict[int, int]] = {}

    def add(self, request: Request) -> None:
        """Queue a request; InputError when it can never be served."""
        self.check(request)
        self.waiting.append(request)

    def check(self, request: Request) -> None:
        """InputError when the request can never be served."""
        need = len(request.prompt) + request.max_new_tokens
        room = min(self.limits.context, self.limits.slots - 1)
        if not request.prompt:
            raise InputError(f"request {request.id}: the prompt is empty; give at least one token")
        if need > room:
            raise InputError(
                f"request {request.id}: {len(request.prompt)} prompt tokens + {request.max_new_tokens} new tokens "
                f"= {need}, but context and KV pool hold {room}; shorten the prompt or lower --max-new-tokens"
            )

    @property
    def busy(self) -> bool:
        return bool(self.waiting or self.running)

    def plan(self) -> Plan | None:
        """The next batch, with its table writes enqueued; None when nothing can run before more results are known."""
        self._release_ended()
        plan = self._plan_extend() or self._plan_decode()
        if plan is None and self.running and not any(r.in_flight for r in self.running):
            self._retract(self.running[-1])  # half-prefilled requests hold every slot: the youngest gives way
            plan = self._plan_extend()
        self.flush()
        return plan

    def release(self, request: Request) -> None:
        """Free row and slots of a request that ended, wherever it is; they can be reused in the very next plan."""
        if request.row:
            self._free(request)
            self.running.remove(request)
        elif request.phase is Phase.WAITING:  # retracted while its last token was in flight
            self.waiting.remove(request)
        request.phase = Phase.DONE

    def flush(self) -> None:
        """Enqueue the pending writes: one scatter per table."""
        for name, cells in self._pending.items():
            n = len(cells)
            index = np.fromiter(cells.keys(), np.int32, n)
            self._tables.write(self._schedule, name, index, np.fromiter(cells.values(), np.int32, n))
            self.counts.writes[name] = self.counts.writes.get(name, 0) + 1
        self._pending.clear()

    # -- batches

    def _plan_extend(self) -> Plan | None:
        while self.waiting and self.row_pool.free_count and not self.waiting[0].in_flight:
            fresh = self.waiting[0]
            if self.running and not self._room_for(len(fresh.known) + len(self.running), whole=True):
                break  # admitting it now would only get somebody retracted in a moment
            self.waiting.popleft()
            fresh.row, fresh.phase = self.row_pool.take(), Phase.PREFILL
            self.running.append(fresh)
        picked: list[tuple[Request, int]] = []
        for request in self.running:
            if request.phase is not Phase.PREFILL or len(picked) == self.limits.extend_rows:
                continue
            n = min(self.limits.chunk, len(request.known) - request.cached)
            self._evict(request)
            if self._room_for(n):
                picked.append((request, n))
                self._allocate(request, n)
        return self._assemble(ForwardMode.EXTEND, picked) if picked else None

    def _plan_decode(self) -> Plan | None:
        picked: list[tuple[Request, int]] = []
        for request in [r for r in self.running if r.phase is Phase.DECODE]:
            if request.phase is not Phase.DECODE:  # retracted to make room for one before it
                continue
            self._evict(request)
            while not self._room_for(1) and self.running[-1] is not request:
                self._retract(self.running[-1])
            if not self._room_for(1):
                self._retract(request)
                continue
            picked.append((request, 1))
            self._allocate(request, 1)
        picked = [(r, n) for r, n in picked if r.phase is Phase.DECODE]
        return self._assemble(ForwardMode.DECODE, picked) if picked else None

    def _assemble(self, mode: ForwardMode, picked: Iterable[tuple[Request, int]]) -> Plan:
        requests, rows, emits = [], [], []
        for r, n in picked:
            prefix = r.cached - n
            decode = mode is ForwardMode.DECODE
            tokens = () if decode else r.known[prefix : r.cached]
            emit = decode or r.cached == len(r.known)
            draw = (uniform(r.params.seed, r.id, r.cached),) if r.params.temperature > 0 else ()
            rows.append(
                BatchRow(
                    r.row, prefix, tokens, tuple(r.slots[prefix:]), decode, r.params.temperature, r.params.top_p, draw
                )
            )
            if not decode:
                self.counts.later_chunks += prefix > 0
                r.chunks += 1
            if emit:
                r.launched += 1
                r.phase = Phase.DECODE
            requests.append(r)
            emits.append(emit)
        return Plan(mode, tuple(requests), tuple(rows), tuple(emits))

    # -- rows and slots

    def _release_ended(self) -> None:
        """Free requests whose last token was launched. The host need not know the token to know that it is the last."""
        for request in [r for r in self.running if r.phase is Phase.DECODE]:
            if request.launched >= request.max_new_tokens or request.total_launched >= self.limits.context:
                self.release(request)

    def _room_for(self, n: int, whole: bool = False) -> bool:
        """Free slots for n tokens; `whole`: of a new request, whose sliding layers hold at most window + chunk."""
        window = self.limits.window
        swa = n if window is None or not whole else min(n, window + self.limits.chunk)
        return self.slot_pool.free_count >= n and (window is None or self.swa_pool.free_count >= swa)

    def _allocate(self, request: Request, n: int) -> None:
        for position in range(request.cached, request.cached + n):
            slot = self.slot_pool.take()
            request.slots.append(slot)
            self._write(REQ_TO_TOKEN, request.row * self.limits.context + position, slot)
            if self.limits.window is not None:
                request.swa[position] = swa = self.swa_pool.take()
                self._write(FULL_TO_SWA, slot, swa)

    def _evict(self, request: Request) -> None:
        """Free sliding slots that no query from here on can see. The forward in flight may still see the oldest."""
        if self.limits.window is None:
            return
        first_visible = request.cached - self.limits.window + 1
        for position in [p for p in request.swa if p < first_visible]:
            self._free_swa(request, position)
            self.counts.evictions += 1

    def _free_swa(self, request: Request, position: int) -> None:
        self.swa_pool.give(request.swa.pop(position))
        self._write(FULL_TO_SWA, request.slots[position], 0)

    def _free(self, request: Request) -> None:
        for position in list(request.swa):
            self._free_swa(request, position)
        for slot in request.slots:
            self.slot_pool.give(slot)
        request.slots.clear()
        self.row_pool.give(request.row)
        request.row = 0

    def _retract(self, request: Request) -> None:
        """Take row and slots back; the request waits at the front and is prefilled again, its known tokens included."""
        self._free(request)
        self.running.remove(request)
        request.phase = Phase.WAITING
        request.retractions += 1
        self.counts.retractions += 1
        self.waiting.appendleft(request)

    def _write(self, table: str, cell: int, value: int) -> None:
        self._pending.setdefault(table, {})[cell] = value  # a later write to the same cell replaces the earlier
