"""Puts an engine together: a model, a backend, a fence, the forwards, and a scheduler. `Engine.run` serves requests."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from warfence.core.attention import make_attention
from warfence.core.backend import FORWARD, PLAN, SCHEDULE, Backend
from warfence.core.batch import BatchLayout
from warfence.core.errors import InputError
from warfence.core.fence import WarBarrier
from warfence.core.forwards import FencePlan, ForwardSet, buckets
from warfence.core.modes import FenceMode, ForwardMode
from warfence.core.program import ForwardProgram, Gated
from warfence.core.runner import Runner
from warfence.core.scheduler import NO_HOOKS, Scheduler
from warfence.host.switches import switch
from warfence.serve.forced_order import ForcedOrder, Hold, gates_of
from warfence.serve.latency import NO_LATENCY, Latency, device_seconds, occupancy
from warfence.serve.lifecycle import Lifecycle
from warfence.serve.model.program import build, sliding_layers, state_specs, table_specs
from warfence.serve.planner import Limits, Planner
from warfence.serve.requests import Request
from warfence.serve.serving import OnToken, Serving
from warfence.serve.spec.algorithm import NO_SPEC, SpecAlgorithm

if TYPE_CHECKING:
    from warfence.serve.model import ModelConfig, Weights
    from warfence.serve.spec import Draft

FORCE_COARSE = "WARFENCE_FORCE_COARSE_WAR_BARRIER"
FORCE_PREFILL_COARSE = "WARFENCE_FORCE_PREFILL_COARSE"
PREFILL_READ_DONE = "WARFENCE_ENABLE_PREFILL_WAR_READ_DONE"


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What the user chooses, then what follows from it when left at 0.

    rows: requests in flight at once. chunk: prompt tokens per request and launch. forced_order: hold every launch
    before its first or last shared read (see `warfence.serve.forced_order`). mixed: decode rows ride along in prefill batches.
    idle: launch a batch of padding while results are awaited. trusting: do not compare what is declared with what the
    backend finds; only to show what a wrong declaration does. Sizes at 0 follow from the model, the rows and the block.
    """

    fence: FenceMode = FenceMode.FINE
    attention: str = "captured"
    serial: bool = False
    markers: bool = True
    sampled: bool = False  # whether any request samples; greedy engines skip those forwards
    forced_order: Hold | None = None
    mixed: bool = False
    idle: bool = False
    trusting: bool = False
    prefills_overlap: bool = True  # a prefill batch may be issued before the result of one right before it is known
    prefill: bool | None = None  # whether prefill may publish; None: as the environment says

    rows: int = 8
    chunk: int = 32
    extend_rows: int = 4
    context: int = 0
    slots: int = 0
    swa_slots: int = 0

    def __post_init__(self) -> None:
        given: object = self.fence
        if not isinstance(given, FenceMode):
            names = ", ".join(f"FenceMode.{one.name}" for one in FenceMode)
            raise InputError(f"EngineConfig(fence={given!r}); choose one of: {names}")
        if self.forced_order not in (None, "first", "last"):
            raise InputError(f"EngineConfig(forced_order={self.forced_order!r}); choose 'first', 'last' or None")

    def limits(self, model: ModelConfig, block: int = 1) -> Limits:
        """Resolve the sizes against a model; InputError where they do not fit. block: tokens of a speculative verify."""
        context = self.context or min(model.context, 512)
        if not 0 < context <= model.context:
            raise InputError(f"context {context}: the model allows 1 to {model.context}")
        if min(self.rows, self.chunk, self.extend_rows) < 1:
            raise InputError(f"rows {self.rows}, chunk {self.chunk}, extend_rows {self.extend_rows}: each at least 1")
        window = model.window if any(model.sliding) else None
        spare = 2 * block if block > 1 else 0  # a verify in flight and the next: neither's accepted length is known
        slots = self.slots or max(context, self.rows * context // 8) + self.rows * spare
        reach = (window or 0) + self.chunk
        prefill = min(self.extend_rows, self.rows) * self.chunk
        swa_slots = self.swa_slots or self.rows * ((window or 0) + spare) + prefill
        if window is not None and swa_slots < reach:
            raise InputError(f"swa_slots {swa_slots}: one request needs window {window} + chunk {self.chunk} = {reach}")
        extend_rows = min(self.extend_rows, self.rows)
        return Limits(
            context, self.rows + 1, slots + 1, swa_slots + 1, self.chunk, extend_rows, window, block, self.mixed,
            self.prefills_overlap,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run did. Seconds and microseconds are host time, but for `device_s_by_mode`: on the forward lane, by mode, as
    far as the backend can tell. spec: rows of a verify that counted, what tokens they brought, fallbacks. occupancy: the share
    of the run in which the forward lane ran; None where the backend cannot tell.
    """

    requests: int
    steps: int
    steps_by_mode: Mapping[str, int]
    generated_tokens: int
    tokens_sha256: str
    seconds: float
    host_us_per_step: float
    barriers: Mapping[str, int]
    policies: Mapping[str, int]
    happened: Mapping[str, int]
    forced_order: Mapping[str, int]
    device_s_by_mode: Mapping[str, float] = field(default_factory=dict)
    spec: Mapping[str, int] = field(default_factory=dict)
    latency: Latency = NO_LATENCY
    occupancy: float | None = None
    backend: Mapping[str, object] = field(default_factory=dict)


class Engine:
    """One model on one backend behind one fence. Use as a context manager: leaving it ends lanes and threads."""

    def __init__(
        self,
        config: EngineConfig,
        model: ModelConfig,
        weights: Weights,
        backend: Backend,
        spec: SpecAlgorithm = NO_SPEC,
        draft: Draft | None = None,
        block: int | None = None,
    ) -> None:
        """spec: the speculative algorithm, with its draft (trained for this model), and the tokens of a verify (None: the
        algorithm's own number)."""
        self.config, self.model, self.backend, self.spec = config, model, backend, spec
        self.drafting = spec.drafting(model, draft, block)
        self.limits = config.limits(model, self.drafting.block if self.drafting is not None else 1)
        attention = make_attention(config.attention, sliding_layers(model))
        prefill = switch(PREFILL_READ_DONE) if config.prefill is None else config.prefill
        self.fence = FencePlan(attention, spec, prefill, config.markers, trusting=config.trusting)
        self.forwards = ForwardSet()
        self._weights, self._life = weights, Lifecycle()
        # Never starts again: a ticket of an earlier run must not look like a new one.
        self._launches = itertools.count(1)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self._life.close()
        self.backend.close()

    def wanted(self) -> list[tuple[ForwardMode, BatchLayout, bool]]:
        """Every forward that serving can ask for."""
        rows, block = buckets(self.config.rows), self.limits.block
        made = [(ForwardMode.DECODE, BatchLayout(b, 1, block)) for b in rows]
        made += [(ForwardMode.EXTEND, BatchLayout(b, self.limits.chunk)) for b in buckets(self.limits.extend_rows)]
        if self.config.mixed:
            chunk = self.limits.chunk  # a decoding row may stand up to a block further than the host knows
            draws = chunk + block if block > 1 else 1
            made += [(ForwardMode.MIXED, BatchLayout(b, chunk, draws)) for b in rows]
        if self.config.idle:
            made.append((ForwardMode.IDLE, BatchLayout(1, 1)))
        if block > 1:
            made += [(ForwardMode.TARGET_VERIFY, BatchLayout(b, block, 2 * block)) for b in rows]
        kinds = (False, True) if self.config.sampled else (False,)
        drafts = [
            (ForwardMode.DRAFT_EXTEND, layout, False) for mode, layout in made for _ in self.spec.phases(mode)[1:]
        ]
        return [(mode, layout, sampled) for mode, layout in made for sampled in kinds] + drafts

    def warm_up(self) -> Iterator[str]:
        """Make tables, state and every forward, yielding a line for each. Nothing is compiled after this.

        FenceError the second time.
        """
        with self._life.warming():
            yield from self._capture()

    def _capture(self) -> Iterator[str]:
        lim = self.limits
        self.tables = self.backend.tables(table_specs(self.model, lim.context, lim.rows, lim.slots))
        queries = max(lim.chunk, lim.block)
        state = state_specs(self.model, lim.rows, lim.slots, lim.swa_slots, self.drafting, queries)
        self.backend.load({**self._weights, **(self.drafting.weights if self.drafting is not None else {})}, state)

        made = Counter[
            BatchLayout
        ]()  # draft's launches of each layout: one for each phase of a step behind the target's

        def build_program(mode: ForwardMode, layout: BatchLayout, sampled: bool) -> ForwardProgram:
            if mode is ForwardMode.DRAFT_EXTEND and self.drafting is not None:
                nth, made[layout] = made[layout], made[layout] + 1
                return self.drafting.draft_extend(self.fence.attention.for_draft(), layout, nth)
            return build(self.model, self.fence.attention, mode, layout, sampled=sampled, drafting=self.drafting)

        yield from self.forwards.capture(self.backend, build_program, self.fence, self.wanted(), self._gated)
        self.backend.lane(FORWARD).synchronize()  # a backend may still be compiling some of them

    def run(
        self,
        requests: Sequence[Request],
        on_token: OnToken = lambda request, token: None,
        *,
        fence: FenceMode | None = None,
        serial: bool | None = None,
    ) -> Summary:
        """Serve the requests to their end. Call after `warm_up` was used up. Blocks; Ctrl-C ends it cleanly.

        fence, serial: for this run instead of the configured ones, with the same captured forwards. InputError for a request
        that can never be served; FenceError before warm_up, from a second thread, inside `on_token`, or in a forked child.
        """
        with self._life.running():
            return self._run(requests, on_token, fence, serial)

    def _run(
        self, requests: Sequence[Request], on_token: OnToken, fence: FenceMode | None, serial: bool | None
    ) -> Summary:
        fence = self.config.fence if fence is None else fence
        serial = self.config.serial if serial is None else serial
        schedule, forward = self.backend.lane(SCHEDULE), self.backend.lane(FORWARD)
        plan_lane = self.backend.lane(PLAN) if self.drafting is not None else None
        planner = Planner(self.limits, self.tables, schedule, plan_lane)
        for request in requests:
            planner.check(request)
            if wrong := [token for token in request.prompt if not 0 <= token < self.model.vocab]:
                raise InputError(f"request {request.id}: token {wrong[0]}; the model has 0 to {self.model.vocab - 1}")
        runners = {name: Runner(name, forward, schedule) for name in self.spec.runners()}
        forced_coarse = switch(FORCE_COARSE) and fence is FenceMode.FINE
        barrier = WarBarrier(FenceMode.COARSE if forced_coarse else fence)
        forced = None if serial else self._forced_order()
        scheduler = Scheduler(
            self.forwards, runners, barrier, schedule, forward, launches=self._launches, promises=self.spec,
            hooks=forced or NO_HOOKS, idle=self.config.idle,
            coarse=frozenset({ForwardMode.EXTEND}) if switch(FORCE_PREFILL_COARSE) else frozenset(),
        )  # fmt: skip
        work = Serving(planner, requests, eos_ids=frozenset(self.model.eos_ids), on_token=on_token)
        (scheduler.serial if serial else scheduler.overlapped)(work)
        steps, timing = sum(scheduler.timing.steps.values()), scheduler.timing
        return Summary(
            requests=len(requests),
            steps=steps,
            steps_by_mode=dict(timing.steps),
            generated_tokens=sum(len(r.output) for r in requests),
            tokens_sha256=tokens_sha256(requests),
            seconds=timing.total,
            host_us_per_step=1e6 * (timing.total - timing.blocked) / max(steps, 1),
            barriers=asdict(barrier.counts),
            policies=dict(sum((r.policies for r in runners.values()), Counter())),
            happened={
                "retractions": planner.counts.retractions,
                "evictions": planner.held.counts.evictions,
                "later_chunks": planner.counts.later_chunks,
                "rows_recycled": planner.held.rows.recycled,
                "slots_recycled": planner.held.slots.recycled,
                "slots_returned": planner.held.counts.returned,
                "not_overlapped": timing.not_overlapped,
            },
            device_s_by_mode=dict(timing.device),
            latency=Latency.of(requests),
            occupancy=occupancy(device_seconds(timing, self.spec), timing.total),
            spec={
                "rows": work.spec_counts.rows,
                "tokens": work.spec_counts.tokens,
                "fallbacks": planner.counts.fallbacks,
            },
            forced_order={}
            if forced is None
            else {"landed_before_read": forced.counts.landed_before_read, "waited": forced.counts.waited},
            backend=dict(self.backend.report()),
        )

    def _gated(self, program: ForwardProgram) -> Gated:
        hold = self.config.forced_order
        return gates_of(program, hold) if hold is not None else False

    def _forced_order(self) -> ForcedOrder | None:
        if self.config.forced_order is None:
            return None
        return ForcedOrder(self.backend.lane(SCHEDULE), self.backend.lane(FORWARD), self.config.forced_order)


def tokens_sha256(requests: Sequence[Request]) -> str:
    """Digest of all output tokens: per request in order of id, its length and its tokens, as little-endian int32."""
    digest = hashlib.sha256()
    for request in sorted(requests, key=lambda r: r.id):
        digest.update(np.array([request.id, len(request.output), *request.output], "<i4").tobytes())
    return digest.hexdigest()


__all__ = ["Engine", "EngineConfig", "Summary", "tokens_sha256"]
