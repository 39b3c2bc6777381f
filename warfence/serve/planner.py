"""Plans the next batch on the host: admission, chunks, decoding or speculating, eviction, retraction, release.

The table writes of a plan may be enqueued at once, because the barrier of the launch before stands in front of them on
their lane. Where a verify is in flight the host knows the length of a row only within bounds (`Request.cached`,
`Request.slack`): the planner keeps slots for the upper one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from warfence.core.backend import Lane, SharedTables
from warfence.core.batch import BatchRow
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode
from warfence.core.scheduler import Plan
from warfence.serve.holdings import Holdings, Limits
from warfence.serve.requests import Phase, Request
from warfence.serve.sampling import uniform

DECODE, EXTEND, MIXED, VERIFY = (
    ForwardMode.DECODE, ForwardMode.EXTEND, ForwardMode.MIXED, ForwardMode.TARGET_VERIFY,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RequestPlan(Plan):
    """A step with the request of each row. `emits[i]`: what comes after row i is an output of its request (not an inner
    prompt chunk)."""

    requests: tuple[Request, ...]
    emits: tuple[bool, ...]


IDLE = RequestPlan(ForwardMode.IDLE, (), (), ())


@dataclass(frozen=True, slots=True)
class Pick:
    """A request of the batch being planned, with its new tokens. decodes: it goes on from its last token."""

    request: Request
    prefix: int
    new: int
    decodes: bool


@dataclass(slots=True)
class Counts:
    """What the planner had to do; tests assert that it happened."""

    retractions: int = 0
    later_chunks: int = 0
    fallbacks: int = 0  # steps that decoded plainly because there were no slots for a block


class Planner:
    """Owns requests and what they hold. plan_lane: where slots for a verify are written (None: the schedule lane)."""

    def __init__(self, limits: Limits, tables: SharedTables, schedule: Lane, plan_lane: Lane | None = None) -> None:
        self.limits = limits
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.held = Holdings(limits, tables, schedule, plan_lane)
        self.counts = Counts()
        self._last: ForwardMode | None = None

    def add(self, request: Request) -> None:
        """Queue a request; InputError when it can never be served."""
        self.check(request)
        self.waiting.append(request)

    def check(self, request: Request) -> None:
        """InputError when the request can never be served."""
        need = len(request.prompt) + request.max_new_tokens
        room = min(self.limits.context, self.limits.slots - 1)
        if not math.isfinite(request.arrival_s):
            raise InputError(f"request {request.id}: arrival_s is {request.arrival_s}; it is a number of seconds")
        if request.max_new_tokens < 1:
            raise InputError(f"request {request.id}: max_new_tokens is {request.max_new_tokens}; it is at least 1")
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

    def plan(self) -> RequestPlan | None:
        """The next batch, with its table writes enqueued; None when nothing can run before more results are known."""
        self._release_ended()
        plan = self._plan_extend() or self._plan_verify() or self._plan_decode()
        if plan is None and not any(r.flying for r in self.running):
            plan = self._make_room()
        self.counts.fallbacks += plan is not None and plan.mode is DECODE and self.limits.block > 1
        self.held.flush(on_plan_lane=plan is not None and plan.mode is VERIFY)
        return self._overlapping(plan)

    def _overlapping(self, plan: RequestPlan | None) -> RequestPlan | None:
        """The plan, asking for no overlap where the host has to know a token first, or where a prefill follows a prefill."""
        before, self._last = self._last, None if plan is None else plan.mode
        if plan is None:
            return None
        in_a_row = not self.limits.prefills_overlap and plan.mode is EXTEND and before is EXTEND
        needed = any(r.needs_token for r, row in zip(plan.requests, plan.rows, strict=True) if row.from_relay)
        return replace(plan, overlap=False) if in_a_row or needed else plan

    def release(self, request: Request) -> None:
        """Free row and slots of a request that ended, wherever it is; they can be reused in the very next plan."""
        if request.row:
            self.held.free(request)
            self.running.remove(request)
        elif request.phase is Phase.WAITING:  # retracted while its last token was in flight
            self.waiting.remove(request)
        request.phase = Phase.DONE

    def learned(self, request: Request) -> None:
        """The length of a row is known better: slots for proposals that were not accepted come back, one step late."""
        if request.row:
            self.held.trim(request)

    def flush(self) -> None:
        """Enqueue what the results of a launch changed in the tables."""
        self.held.flush()

    # -- batches

    def _plan_extend(self) -> RequestPlan | None:
        while self.waiting and self.held.rows.free_count and not self.waiting[0].flying:
            fresh = self.waiting[0]
            if self.running and not self.held.room_for(len(fresh.known) + len(self.running), whole=True):
                break  # admitting it now would only get somebody retracted in a moment
            self.waiting.popleft()
            fresh.row, fresh.phase = self.held.rows.take(), Phase.PREFILL
            self.running.append(fresh)
        picked: list[Pick] = []
        for request in self.running:
            if request.phase is not Phase.PREFILL or len(picked) == self.limits.extend_rows:
                continue
            n = min(self.limits.chunk, len(request.known) - request.cached)
            self.held.evict(request)
            if self.held.room_for(n):
                picked.append(Pick(request, request.cached, n, decodes=False))
                self.held.hold(request, request.cached + n)
        if not picked:
            return None
        riders = self._riders() if self.limits.mixed else []
        return self._assemble(MIXED if riders else EXTEND, [*picked, *riders])

    def _riders(self) -> list[Pick]:
        """Decoding requests that ride along in a prefill batch, one token each, as far as there are slots."""
        riders: list[Pick] = []
        for request in [r for r in self.running if r.phase is Phase.DECODE]:
            self.held.evict(request)
            reach = request.cached + request.slack + 1
            if self.held.room_for(self.held.missing(request, reach)):
                riders.append(Pick(request, request.cached, 1, decodes=True))
                self.held.hold(request, reach)
        return riders

    def _plan_verify(self) -> RequestPlan | None:
        """A block for every decoding request; None where nothing speculates, or where the slots do not suffice."""
        block = self.limits.block
        decoding = [r for r in self.running if r.phase is Phase.DECODE]
        if block == 1 or not decoding:
            return None
        for request in decoding:
            self.held.evict(request)
        if not self.held.room_for(sum(self.held.missing(r, r.cached + r.slack + block) for r in decoding)):
            return None
        for request in decoding:
            self.held.hold(request, request.cached + request.slack + block)
        return self._assemble(VERIFY, [Pick(r, r.cached, block, decodes=True) for r in decoding])

    def _plan_decode(self) -> RequestPlan | None:
        picked: list[Pick] = []
        for request in [r for r in self.running if r.phase is Phase.DECODE]:
            if request.phase is not Phase.DECODE:  # retracted to make room for one before it
                continue
            self.held.evict(request)
            reach = request.cached + request.slack + 1
            need = self.held.missing(request, reach)
            while not self.held.room_for(need) and self.running[-1] is not request:
                self._retract(self.running[-1])
            if not self.held.room_for(need):
                self._retract(request)
                continue
            picked.append(Pick(request, request.cached, 1, decodes=True))
            self.held.hold(request, reach)
        picked = [p for p in picked if p.request.phase is Phase.DECODE]
        return self._assemble(DECODE, picked) if picked else None

    def _assemble(self, mode: ForwardMode, picked: Iterable[Pick]) -> RequestPlan:
        requests, rows, emits = [], [], []
        for p in picked:
            r, end = p.request, p.prefix + p.new
            emit = p.decodes or end == len(r.known)
            tokens = () if p.decodes else r.known[p.prefix : end]
            rows.append(
                BatchRow(
                    r.row, p.prefix, tokens, tuple(r.slots[p.prefix : end]), p.decodes, r.params.temperature,
                    r.params.top_p, self._draws(r, mode, p), p.new,
                )
            )  # fmt: skip
            if not p.decodes:
                self.counts.later_chunks += p.prefix > 0
                r.chunks += 1
            r.cached += 1 if p.decodes else p.new
            r.slack += p.new - 1 if p.decodes else 0
            if emit:
                r.flying += 1
                r.phase = Phase.DECODE
            requests.append(r)
            emits.append(emit)
        return RequestPlan(mode, tuple(rows), tuple(requests), tuple(emits))

    def _draws(self, request: Request, mode: ForwardMode, p: Pick) -> tuple[float, ...]:
        """The draws for all tokens that the launch may choose, counted from the least length that the row can have."""
        if request.params.temperature == 0:
            return ()
        first = p.prefix + (1 if p.decodes else p.new)
        count = p.new + (self.limits.block - 1 if mode in (VERIFY, DECODE, MIXED) else 0) if p.decodes else 1
        return tuple(uniform(request.params.seed, request.id, first + i) for i in range(count))

    # -- ends

    def _release_ended(self) -> None:
        """Free requests whose last token was launched. The host need not know the token to know that it is the last."""
        for request in [r for r in self.running if r.phase is Phase.DECODE]:
            if request.is_full(self.limits.context):
                self.release(request)

    def _make_room(self) -> RequestPlan | None:
        """Half-prefilled requests hold every slot: the youngest give way, one after the other, until one can go on."""
        for request in reversed(list(self.running)):
            self._retract(request)
            if (plan := self._plan_extend()) is not None:
                return plan
        return None

    def _retract(self, request: Request) -> None:
        """Take row and slots back; the request waits at the front and is prefilled again, its known tokens included."""
        self.held.free(request)
        self.running.remove(request)
        request.phase = Phase.WAITING
        request.retractions += 1
        self.counts.retractions += 1
        self.waiting.appendleft(request)


__all__ = ["IDLE", "Limits", "Planner", "RequestPlan"]
