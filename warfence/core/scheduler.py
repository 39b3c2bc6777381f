"""The overlap loop and its serial twin.

The order of the lines in `overlapped` is the protocol: plan, launch, barrier, and only then the result of the launch
before (public source: sglang #31687). The host learns tokens one step late; the device has them at once, in the relay.
Who owns requests, and what is planned for them, is behind `Work`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from warfence.core.backend import Forward, Lane, Outputs
from warfence.core.batch import BatchRow, pack
from warfence.core.fence import WarBarrier
from warfence.core.forwards import ForwardSet
from warfence.core.modes import ForwardMode
from warfence.core.promises import NO_PROMISES, TARGET, Promises
from warfence.core.runner import Runner


@dataclass(frozen=True, slots=True)
class Plan:
    """One planned step: a mode, and what each row of its batch brings.

    overlap: False where the result of the step before has to be handed over before this one is issued.
    """

    mode: ForwardMode
    rows: tuple[BatchRow, ...]
    overlap: bool = field(default=True, kw_only=True)


P = TypeVar("P", bound=Plan)
Results = Mapping[ForwardMode, Mapping[str, np.ndarray]]  # of the phases of a step


class Work(Protocol[P]):
    """Whoever owns the requests. Called by the loop alone, on its thread."""

    def begin(self) -> None:
        """The loop begins: arrivals count from here."""
        ...

    def admit(self) -> bool:
        """Queue what has arrived; True while anything is left to do."""
        ...

    def plan(self) -> P | None:
        """The next step, its table writes enqueued; None when nothing can run before more results are known.

        Legal at any time: the barrier of the launch before stands in front of these writes on their lane.
        """
        ...

    def padding(self) -> P:
        """A step with no rows, as a rank launches whose peers have work."""
        ...

    def learn(self, plan: P, results: Results) -> None:
        """The results of a step that was planned here, in order; enqueues what they change in the tables."""
        ...

    def await_arrival(self) -> None:
        """Nothing can run: block the host until the next request exists, if there is one."""
        ...


class Hooks(Protocol):
    """What may stand between the lines of the loop, for tests and lessons. `NoHooks` is the default."""

    def before_launch(self, forward: Forward) -> None:
        """Right before the first phase of a step is issued."""
        ...

    def after_launch(self) -> None:
        """Right after it, before the next phase and the barrier."""
        ...

    def after_plan(self) -> None:
        """The next step is planned, its table writes are enqueued."""
        ...


class NoHooks:
    """Implements `Hooks` with nothing."""

    def before_launch(self, forward: Forward) -> None:
        """Nothing."""

    def after_launch(self) -> None:
        """Nothing."""

    def after_plan(self) -> None:
        """Nothing."""


NO_HOOKS = NoHooks()


@dataclass(frozen=True, slots=True)
class Launch(Generic[P]):
    """A step that was issued: what was planned, and where the results of its phases will come, by mode.

    owner: the runner of the last phase, whose mailbox the barrier takes. number: that phase's launch. outputs: of the phases.
    """

    number: int
    owner: str
    plan: P
    outputs: tuple[tuple[ForwardMode, Outputs], ...]


@dataclass(slots=True)
class Timing:
    """Host time in seconds. `blocked`: waiting for results or arrivals, so total - blocked is the host's own work.

    device: seconds on the forward lane by mode, as far as the backend can tell. not_overlapped: steps that were issued only
    after the result of the step before was handed over, because their plan asked for it.
    """

    total: float = 0.0
    blocked: float = 0.0
    steps: Counter[str] = field(default_factory=Counter)
    device: dict[str, float] = field(default_factory=dict)
    not_overlapped: int = 0


class Scheduler:
    """Runs steps until no work is left.

    launches: the numbers to give out; unique for as long as the forwards live. promises: of the speculative algorithm, whose
    phases make a step. idle: while there is nothing to plan and results are awaited, launch a step of padding. coarse: modes
    whose steps publish nothing, whatever the policy says: their ticket is dropped.
    """

    def __init__(
        self, forwards: ForwardSet, runners: Mapping[str, Runner], barrier: WarBarrier, schedule: Lane, forward: Lane, *,
        launches: Iterator[int], promises: Promises = NO_PROMISES, hooks: Hooks = NO_HOOKS, idle: bool = False,
        coarse: frozenset[ForwardMode] = frozenset(),
    ) -> None:  # fmt: skip
        self.forwards, self.runners, self.barrier = forwards, runners, barrier
        self.schedule, self.forward = schedule, forward
        self.timing = Timing()
        self._launches, self._promises, self._hooks, self._idle = launches, promises, hooks, idle
        self._coarse = coarse
        self._untimed: tuple[tuple[ForwardMode, Outputs], ...] = ()

    def overlapped(self, work: Work[P]) -> None:
        """Plan batch N+1 while forward N runs. Blocks the host until all work is done."""
        start = self._begin(work)
        previous: Launch[P] | None = None
        while work.admit() or previous is not None:
            plan = self._plan(work, previous)
            self._hooks.after_plan()
            if plan is not None and previous is not None and not plan.overlap:
                self._process(work, previous)  # what it writes stands behind the barrier of its own launch
                self.timing.not_overlapped += 1
                previous = None
            current = self._launch(plan) if plan is not None else None
            if current is not None:
                self._apply_barrier(current)
            if previous is not None:
                self._process(work, previous)
            previous = current
            if plan is None and previous is None:
                self._await_arrival(work)
        self._end(start)

    def serial(self, work: Work[P]) -> None:
        """The twin without overlap: every result is processed before the next plan, so there is nothing to fence."""
        start = self._begin(work)
        while work.admit():
            plan = work.plan()
            if plan is None:
                self._await_arrival(work)
                continue
            launch = self._launch(plan)
            for runner in self.runners.values():
                runner.mailbox.clear()
            self._process(work, launch)
        self._end(start)

    # -- one step

    def _plan(self, work: Work[P], previous: Launch[P] | None) -> P | None:
        plan = work.plan()
        awaited = previous is not None and previous.plan.mode is not ForwardMode.IDLE
        return work.padding() if plan is None and awaited and self._idle else plan

    def _launch(self, plan: P) -> Launch[P]:
        """Issue the phases of a step. They share one batch; the last one's runner owns the mailbox."""
        sampled = any(row.temperature > 0 for row in plan.rows)
        target = self.forwards.pick(plan.mode, len(plan.rows), sampled)
        batch = pack(target.forward.program.layout, plan.rows)
        outputs: list[tuple[ForwardMode, Outputs]] = []
        owner, number = TARGET, 0
        for nth, (owner, mode) in enumerate(self._promises.phases(plan.mode)):
            first = nth == 0
            planned = target if first else self.forwards.beside(mode, target.forward.program.layout, nth - 1)
            if first:
                self._hooks.before_launch(planned.forward)
            number = next(self._launches)
            outputs.append((mode, self.runners[owner].execute(planned, batch, number)))
            if first:
                self._hooks.after_launch()
        self.timing.steps[plan.mode.value] += 1
        return Launch(number, owner, plan, tuple(outputs))

    def _apply_barrier(self, launch: Launch[P]) -> None:
        """Wait for the last reader of the step. What another runner left is of an earlier phase, and never used."""
        for name, runner in self.runners.items():
            if name != launch.owner or launch.plan.mode in self._coarse:
                runner.mailbox.clear()
        self.barrier.apply(launch.number, self.runners[launch.owner].mailbox, self.schedule, self.forward)

    def _process(self, work: Work[P], launch: Launch[P]) -> None:
        """Await the results of a step and hand them over."""
        before = time.perf_counter()
        results = {mode: outputs.result() for mode, outputs in launch.outputs}
        self.timing.blocked += time.perf_counter() - before
        self._note_device_time()  # one launch later: nobody waits for a clock
        self._untimed = launch.outputs
        work.learn(launch.plan, results)

    # -- times

    def _begin(self, work: Work[P]) -> float:
        work.begin()
        return time.perf_counter()

    def _end(self, start: float) -> None:
        self.timing.total += time.perf_counter() - start
        self._note_device_time()
        self._untimed = ()

    def _note_device_time(self) -> None:
        for mode, outputs in self._untimed:
            if outputs.device_s is not None:
                self.timing.device[mode.value] = self.timing.device.get(mode.value, 0.0) + outputs.device_s

    def _await_arrival(self, work: Work[P]) -> None:
        before = time.perf_counter()
        work.await_arrival()
        self.timing.blocked += time.perf_counter() - before


__all__ = ["NO_HOOKS", "Hooks", "Launch", "NoHooks", "Plan", "Results", "Scheduler", "Timing", "Work"]
