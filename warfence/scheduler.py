"""The overlap loop and its serial twin.

The order of the lines in `overlapped` is the protocol: plan, launch, barrier, and only then the result of the launch
before (public source: sglang #31687). The host learns tokens one step late; the device has them at once, in the relay.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from warfence.backend import Lane, Outputs
from warfence.batch import pack
from warfence.fence import WarBarrier
from warfence.forced_order import ForcedOrder
from warfence.forwards import ForwardSet
from warfence.planner import Plan, Planner
from warfence.requests import Request
from warfence.runner import Runner

OnToken = Callable[[Request, int], None]


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch that was issued: what was planned and where its results will come."""

    number: int
    plan: Plan
    outputs: Outputs


@dataclass(slots=True)
class Timing:
    """Host time in seconds. `blocked`: waiting for results or arrivals, so total - blocked is the host's own work."""

    total: float = 0.0
    blocked: float = 0.0
    steps: Counter[str] = field(default_factory=Counter)


class Scheduler:
    """Serves requests until none is left. `on_token` is called for each output token, in order, once it is known.

    launches: the numbers to give out; unique for as long as the forwards live.
    """

    def __init__(
        self, planner: Planner, forwards: ForwardSet, runner: Runner, barrier: WarBarrier, schedule: Lane,
        forward: Lane, *, eos_ids: frozenset[int], on_token: OnToken, launches: Iterator[int],
        forced_order: ForcedOrder | None = None,
    ) -> None:  # fmt: skip
        self.planner, self.forwards, self.runner, self.barrier = planner, forwards, runner, barrier
        self.schedule, self.forward = schedule, forward
        self.timing = Timing()
        self._eos_ids, self._on_token, self._forced = eos_ids, on_token, forced_order
        self._launches = launches
        self._arrivals: list[Request] = []

    def overlapped(self, requests: list[Request]) -> None:
        """Plan batch N+1 while forward N runs. Blocks the host until every request is done."""
        start = self._begin(requests)
        previous: Launch | None = None
        while self._admit(start) or previous is not None:
            plan = self.planner.plan()
            self._resolve_forced_order()
            current = self._launch(plan) if plan is not None else None
            if current is not None:
                self.barrier.apply(current.number, self.runner.mailbox, self.schedule, self.forward)
            if previous is not None:
                self._process(previous)
            previous = current
            if plan is None and previous is None:
                self._await_arrival(start)
        self.timing.total += time.perf_counter() - start

    def serial(self, requests: list[Request]) -> None:
        """The twin without overlap: every result is processed before the next plan, so there is nothing to fence."""
        start = self._begin(requests)
        while self._admit(start):
            plan = self.planner.plan()
            if plan is None:
                self._await_arrival(start)
                continue
            launch = self._launch(plan)
            self.runner.mailbox.clear()
            self._process(launch)
        self.timing.total += time.perf_counter() - start

    # -- one step

    def _launch(self, plan: Plan) -> Launch:
        sampled = any(row.temperature > 0 for row in plan.rows)
        planned = self.forwards.pick(plan.mode, len(plan.rows), sampled)
        batch = pack(planned.forward.program.layout, plan.rows)
        if self._forced is not None:
            self._forced.before_launch(planned.forward)
        number = next(self._launches)
        outputs = self.runner.execute(planned, batch, number)
        if self._forced is not None:
            self._forced.after_launch()
        self.timing.steps[plan.mode.value] += 1
        return Launch(number, plan, outputs)

    def _process(self, launch: Launch) -> None:
        """Learn the tokens of a launch, end requests, and write what their end changes in the tables."""
        before = time.perf_counter()
        result = launch.outputs.result()
        self.timing.blocked += time.perf_counter() - before
        tokens, margins = result["next_tokens"], result["margin"]
        for i, (request, emits) in enumerate(zip(launch.plan.requests, launch.plan.emits, strict=True)):
            if not emits or request.stopped:  # an inner chunk, or surplus of a request that ended one step ago
                continue
            token = int(tokens[i])
            request.output.append(token)
            request.margins.append(float(margins[i]))
            self._on_token(request, token)
            if request.stop_at_eos and token in self._eos_ids:
                request.stopped = True
                request.launched = len(request.output)
                self.planner.release(request)
        self.planner.flush()

    def _resolve_forced_order(self) -> None:
        if self._forced is not None:
            self._forced.resolve()

    # -- arrivals

    def _begin(self, requests: list[Request]) -> float:
        self._arrivals = sorted(requests, key=lambda r: (r.arrival_s, r.id), reverse=True)  # popped from the end
        return time.perf_counter()

    def _admit(self, start: float) -> bool:
        """Queue what has arrived; True while anything is left to do."""
        now = time.perf_counter() - start
        while self._arrivals and self._arrivals[-1].arrival_s <= now:
            self.planner.add(self._arrivals.pop())
        return bool(self._arrivals) or self.planner.busy

    def _await_arrival(self, start: float) -> None:
        """Nothing can run: sleep until the next request exists."""
        if self._arrivals:
            before = time.perf_counter()
            time.sleep(max(0.0, self._arrivals[-1].arrival_s - (before - start)))
            self.timing.blocked += time.perf_counter() - before


__all__ = ["Launch", "Scheduler", "Timing"]
