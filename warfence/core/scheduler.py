"""The overlap loop and its serial twin.

The order of the lines in `overlapped` is the protocol: plan, launch, barrier, and only then the result of the launch
before (public source: sglang #31687). The host learns tokens one step late; the device has them at once, in the relay.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from warfence.core.backend import Lane, Outputs
from warfence.core.batch import pack
from warfence.core.fence import WarBarrier
from warfence.core.forwards import ForwardSet
from warfence.core.modes import ForwardMode
from warfence.core.runner import Runner
from warfence.parity.forced_order import ForcedOrder
from warfence.serve.planner import IDLE, Plan, Planner
from warfence.serve.requests import Phase, Request
from warfence.serve.spec.algorithm import NO_SPEC, TARGET, SpecAlgorithm

OnToken = Callable[[Request, int], None]


@dataclass(frozen=True, slots=True)
class Launch:
    """A step that was issued: what was planned, and where the results of its phases will come, by mode.

    owner: the runner of the last phase, whose mailbox the barrier takes. number: that phase's launch.
    """

    number: int
    owner: str
    plan: Plan
    outputs: Mapping[ForwardMode, Outputs]


@dataclass(slots=True)
class Timing:
    """Host time in seconds. `blocked`: waiting for results or arrivals, so total - blocked is the host's own work.

    device: seconds on the forward lane by mode, as far as the backend can tell.
    """

    total: float = 0.0
    blocked: float = 0.0
    steps: Counter[str] = field(default_factory=Counter)
    device: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class SpecCounts:
    """rows: rows of a verify whose result counted. tokens: what these brought, the chosen token included."""

    rows: int = 0
    tokens: int = 0


class Scheduler:
    """Serves requests until none is left. `on_token` is called for each output token, in order, once it is known.

    launches: the numbers to give out; unique for as long as the forwards live. idle: while there is nothing to plan and
    results are awaited, launch a batch of padding, as a rank does whose peers have work.
    """

    def __init__(
        self, planner: Planner, forwards: ForwardSet, runners: Mapping[str, Runner], barrier: WarBarrier, schedule: Lane,
        forward: Lane, *, eos_ids: frozenset[int], on_token: OnToken, launches: Iterator[int],
        forced_order: ForcedOrder | None = None, spec: SpecAlgorithm = NO_SPEC, idle: bool = False,
    ) -> None:  # fmt: skip
        self.planner, self.forwards, self.runners, self.barrier = planner, forwards, runners, barrier
        self.schedule, self.forward = schedule, forward
        self.timing, self.spec_counts = Timing(), SpecCounts()
        self._eos_ids, self._on_token, self._forced = eos_ids, on_token, forced_order
        self._launches, self._spec, self._idle = launches, spec, idle
        self._arrivals: list[Request] = []
        self._untimed: Launch | None = None

    def overlapped(self, requests: list[Request]) -> None:
        """Plan batch N+1 while forward N runs. Blocks the host until every request is done."""
        start = self._begin(requests)
        previous: Launch | None = None
        while self._admit(start) or previous is not None:
            plan = self._plan(previous)
            self._resolve_forced_order()
            current = self._launch(plan) if plan is not None else None
            if current is not None:
                self._apply_barrier(current)
            if previous is not None:
                self._process(previous)
            previous = current
            if plan is None and previous is None:
                self._await_arrival(start)
        self._end(start)

    def serial(self, requests: list[Request]) -> None:
        """The twin without overlap: every result is processed before the next plan, so there is nothing to fence."""
        start = self._begin(requests)
        while self._admit(start):
            plan = self.planner.plan()
            if plan is None:
                self._await_arrival(start)
                continue
            launch = self._launch(plan)
            for runner in self.runners.values():
                runner.mailbox.clear()
            self._process(launch)
        self._end(start)

    # -- one step

    def _plan(self, previous: Launch | None) -> Plan | None:
        plan = self.planner.plan()
        awaited = previous is not None and previous.plan is not IDLE
        return IDLE if plan is None and awaited and self._idle else plan

    def _launch(self, plan: Plan) -> Launch:
        """Issue the phases of a step. They share one batch; the last one's runner owns the mailbox."""
        sampled = any(row.temperature > 0 for row in plan.rows)
        target = self.forwards.pick(plan.mode, len(plan.rows), sampled)
        batch = pack(target.forward.program.layout, plan.rows)
        outputs: dict[ForwardMode, Outputs] = {}
        owner, number = TARGET, 0
        for owner, mode in self._spec.phases(plan.mode):
            first = mode is plan.mode
            planned = target if first else self.forwards.beside(mode, target.forward.program.layout)
            if self._forced is not None and first:
                self._forced.before_launch(planned.forward)
            number = next(self._launches)
            outputs[mode] = self.runners[owner].execute(planned, batch, number)
            if self._forced is not None and first:
                self._forced.after_launch()
        self.timing.steps[plan.mode.value] += 1
        return Launch(number, owner, plan, outputs)

    def _apply_barrier(self, launch: Launch) -> None:
        """Wait for the last reader of the step. What another runner left is of an earlier phase, and never used."""
        for name, runner in self.runners.items():
            if name != launch.owner:
                runner.mailbox.clear()
        self.barrier.apply(launch.number, self.runners[launch.owner].mailbox, self.schedule, self.forward)

    def _process(self, launch: Launch) -> None:
        """Learn the tokens of a launch, end requests, and write what their end changes in the tables."""
        before = time.perf_counter()
        results = {mode: outputs.result() for mode, outputs in launch.outputs.items()}
        self.timing.blocked += time.perf_counter() - before
        self._note_device_time(self._untimed)  # one launch later: nobody waits for a clock
        self._untimed = launch
        result, plan = results[launch.plan.mode], launch.plan
        verify = plan.mode is ForwardMode.TARGET_VERIFY
        tokens, margins = result["next_tokens"], result["margin"]
        for i, (request, emits) in enumerate(zip(plan.requests, plan.emits, strict=True)):
            if not emits or request.stopped:  # an inner chunk, or surplus of a request that ended one step ago
                continue
            if verify:
                n = int(result["accept_lens"][i])
                learned = self._learn(request, tokens[i, :n].tolist(), margins[i, :n].tolist(), tokens.shape[1])
                self.spec_counts.rows += 1
                self.spec_counts.tokens += learned
            else:
                self._learn(request, [int(tokens[i])], [float(margins[i])], 1)
        self.planner.flush()

    def _learn(self, request: Request, tokens: list[int], margins: list[float], block: int) -> int:
        """Hand the tokens of one launch over, up to the request's last one. Returns how many that were."""
        room = min(request.max_new_tokens, self.planner.limits.context - len(request.prompt)) - len(request.output)
        ends = [i for i, token in enumerate(tokens) if request.stop_at_eos and token in self._eos_ids]
        n = min(len(tokens), room, ends[0] + 1 if ends else len(tokens))
        request.learn(n, block)
        for token, margin in zip(tokens[:n], margins, strict=False):
            request.output.append(token)
            request.margins.append(margin)
            self._on_token(request, token)
        if n == room or (ends and n == ends[0] + 1):
            request.stop()
            if request.phase is not Phase.DONE:
                self.planner.release(request)
        elif block > 1:
            self.planner.learned(request)
        return n

    def _note_device_time(self, launch: Launch | None) -> None:
        for mode, outputs in launch.outputs.items() if launch is not None else ():
            if outputs.device_s is not None:
                self.timing.device[mode.value] = self.timing.device.get(mode.value, 0.0) + outputs.device_s

    def _resolve_forced_order(self) -> None:
        if self._forced is not None:
            self._forced.resolve()

    # -- arrivals

    def _begin(self, requests: list[Request]) -> float:
        self._arrivals = sorted(requests, key=lambda r: (r.arrival_s, r.id), reverse=True)  # popped from the end
        return time.perf_counter()

    def _end(self, start: float) -> None:
        self.timing.total += time.perf_counter() - start
        self._note_device_time(self._untimed)
        self._untimed = None

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
