"""Mistakes in the neutral part: policy, tickets, mailbox, barrier, runner, loop, planner."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from warfence.core.backend import Lane, Marker, Outputs
from warfence.core.batch import Batch, BatchLayout, BatchRow, pack
from warfence.core.errors import FenceError
from warfence.core.fence import Mailbox, Ticket, WarBarrier
from warfence.core.forwards import PlannedForward
from warfence.core.modes import FenceMode, SharedReadEnds, WarReadDonePolicy
from warfence.core.policy import RULES, Decision, Query, decide
from warfence.core.runner import Runner
from warfence.core.scheduler import Launch, Scheduler, Work
from warfence.parity.mutants.base import Mutant
from warfence.serve.holdings import Holdings
from warfence.serve.requests import Request
from warfence.serve.spec import SpecAlgorithm, get

_apply, _execute, _evict = WarBarrier.apply, Runner.execute, Holdings.evict
_flush = Holdings.flush


def _fine_although_forced(self: WarBarrier, launch: int, mailbox: Mailbox, schedule: Lane, forward: Lane) -> None:
    chosen, self.mode = self.mode, FenceMode.FINE if self.mode is FenceMode.COARSE else self.mode
    try:
        _apply(self, launch, mailbox, schedule, forward)
    finally:
        self.mode = chosen


def _waits_for_nothing(self: WarBarrier, launch: int, mailbox: Mailbox, schedule: Lane, forward: Lane) -> None:
    mailbox.take()


def _leaves_the_ticket(self: WarBarrier, launch: int, mailbox: Mailbox, schedule: Lane, forward: Lane) -> None:
    ticket = mailbox.take()
    if ticket is not None:
        mailbox.publish(ticket)
    _apply(self, launch, mailbox, schedule, forward)
    if ticket is not None and self.mode is FenceMode.COARSE:
        mailbox.publish(ticket)


def _any_time(self: Marker, launch: int) -> Ticket:
    if self._source is None:
        raise FenceError("nothing was ever recorded")
    return Ticket(launch, self._source)


def _barrier_at_loop_top(self: Scheduler, work: Work[Any]) -> None:
    """The loop as it was before the barrier moved: it comes only before the next plan, after result processing."""
    start = self._begin(work)
    previous: Launch[Any] | None = None
    while work.admit() or previous is not None:
        if previous is not None:
            self._apply_barrier(previous)
        plan = self._plan(work, previous)
        current = self._launch(plan) if plan is not None else None
        if previous is not None:
            self._process(work, previous)
        previous = current
    self._end(start)


_EARLY = tuple(
    replace(rule, policy=WarReadDonePolicy.PRE_REPLAY) if rule.name == "in-graph-without-marker" else rule
    for rule in RULES
)


def _falls_earlier(query: Query, rules: object = None) -> Decision:
    return decide(query, _EARLY)


def _first_child(children: Iterable[SharedReadEnds]) -> SharedReadEnds:
    return next(iter(children), SharedReadEnds.UNKNOWN)


def _unchecked(self: Ticket) -> None:
    return None


class _KeepsTickets:
    """A barrier that waits once more, a launch late, on the ticket that it kept."""

    def __init__(self) -> None:
        self._kept: dict[int, Ticket] = {}

    def __call__(self, barrier: WarBarrier, launch: int, mailbox: Mailbox, schedule: Lane, forward: Lane) -> None:
        ticket = mailbox.take()
        if ticket is not None:
            mailbox.publish(ticket)
        _apply(barrier, launch, mailbox, schedule, forward)
        kept = self._kept.pop(id(barrier), None)
        if kept is not None:
            schedule.wait(kept)
        if ticket is not None:
            self._kept[id(barrier)] = ticket


def _keeps_tickets() -> AbstractContextManager[object]:
    keeps = _KeepsTickets()

    def apply(self: WarBarrier, launch: int, mailbox: Mailbox, schedule: Lane, forward: Lane) -> None:
        keeps(self, launch, mailbox, schedule, forward)

    return mock.patch.object(WarBarrier, "apply", apply)


def _publishes_first(self: Runner, planned: PlannedForward, batch: Batch, launch: int) -> Outputs:
    """Asks the marker for its ticket before the replay is issued, whatever the marker says to that."""
    forward, marker = planned.forward, planned.forward.marker
    if marker is None or planned.policy_of(batch) is not WarReadDonePolicy.IN_GRAPH:
        return _execute(self, planned, batch, launch)
    with self.session.of(launch):
        self._forward_lane.wait_lane(self._schedule_lane)
        forward.load_batch(batch, launch)
        self.mailbox.publish(marker.ticket(launch))
        forward.replay(launch)
        return forward.tail(launch)


def _waits_for_no_lane(other: Lane) -> None:
    return None


def _clears_nothing(self: Mailbox) -> None:
    return None


def _without_raw(self: Runner, planned: PlannedForward, batch: Batch, launch: int) -> Outputs:
    with mock.patch.object(self._forward_lane, "wait_lane", _waits_for_no_lane):
        return _execute(self, planned, batch, launch)


def _evicts_early(self: Holdings, request: Request) -> None:
    right = self.limits
    self.limits = replace(right, window=right.window - 1 if right.window else None)
    try:
        _evict(self, request)
    finally:
        self.limits = right


def _target_owns(self: Scheduler, launch: Launch[Any]) -> None:
    """The barrier takes the mailbox of the target, whoever read last: a ticket of the verify, or nothing."""
    self.barrier.apply(launch.number, self.runners["target"].mailbox, self.schedule, self.forward)
    for runner in self.runners.values():
        runner.mailbox.clear()


def _plan_lane_unordered(self: Holdings, on_plan_lane: bool = False) -> None:
    if on_plan_lane and self._plan is not None:
        with mock.patch.object(self._plan, "wait_lane", _waits_for_no_lane):
            _flush(self, on_plan_lane)
    else:
        _flush(self, on_plan_lane)


def _ngram_claims(name: str) -> SpecAlgorithm:
    found = get(name)
    return replace(found, supports_target_verify_read_done=True) if name == "ngram" else found


class _OneBuffer:
    """A pack() that fills the same words each time, as a careless staging buffer would be."""

    def __init__(self) -> None:
        self._words: dict[int, np.ndarray] = {}

    def __call__(self, layout: BatchLayout, rows: Iterable[BatchRow]) -> Batch:
        fresh = pack(layout, rows).words
        words = self._words.setdefault(layout.words, np.empty_like(fresh))
        words[:] = fresh
        return Batch(layout, words)


def _one_buffer() -> AbstractContextManager[object]:
    stack, careless = ExitStack(), _OneBuffer()
    for place in ("warfence.core.batch.pack", "warfence.core.scheduler.pack", "warfence.parity.rig.pack"):
        stack.enter_context(mock.patch(place, careless))
    return stack


NEUTRAL: tuple[Mutant, ...] = (
    Mutant(
        "no-wait", "1-no-write-before-reads", "the barrier takes the ticket and waits for nothing",
        lambda: mock.patch.object(WarBarrier, "apply", _waits_for_nothing),
    ),
    Mutant(
        "forced-coarse-ignored", "3-nothing-is-coarse", "a forced coarse barrier takes the ticket all the same",
        lambda: mock.patch.object(WarBarrier, "apply", _fine_although_forced),
    ),
    Mutant(
        "ticket-unchecked", "4-one-launch", "nobody asks whose record a ticket waits for",
        lambda: mock.patch.object(Ticket, "check", _unchecked),
    ),
    Mutant(
        "marker-any-time", "5-after-its-launch", "the marker's ticket is handed out before its launch was issued",
        lambda: mock.patch.object(Marker, "ticket", _any_time),
    ),
    Mutant(
        "waits-on-a-kept-ticket", "4-one-launch", "the barrier waits on the ticket of the launch before once more",
        _keeps_tickets, right_by_value=True,
    ),
    Mutant(
        "publishes-before-replay", "5-after-its-launch", "the runner takes the marker's ticket before the replay is issued",
        lambda: mock.patch.object(Runner, "execute", _publishes_first), right_by_value=True,
    ),
    Mutant(
        "barrier-at-loop-top", "6-barrier-after-launch", "the barrier comes after result processing",
        lambda: mock.patch.object(Scheduler, "overlapped", _barrier_at_loop_top),
    ),
    Mutant(
        "plan-lane-overtakes", "6-barrier-after-launch", "slots for a block are written without waiting for the schedule lane",
        lambda: mock.patch.object(Holdings, "flush", _plan_lane_unordered),
    ),
    Mutant(
        "target-owns", "7-mailbox-emptied", "the target's mailbox is taken although the draft reads last",
        lambda: mock.patch.object(Scheduler, "_apply_barrier", _target_owns),
    ),
    Mutant(
        "claims-last-reader", "2-release-at-boundary", "an algorithm that reads on says that its verify is the last reader",
        lambda: mock.patch("warfence.parity.rig.get", _ngram_claims),
    ),
    Mutant(
        "ticket-left-behind", "7-mailbox-emptied", "a forced coarse barrier leaves the ticket in the mailbox",
        lambda: mock.patch.object(WarBarrier, "apply", _leaves_the_ticket),
    ),
    Mutant(
        "falls-earlier", "8-degrade-later", "in-graph without a marker is recorded before the replay (as once published)",
        lambda: mock.patch("warfence.core.forwards.decide", _falls_earlier),
    ),
    Mutant(
        "first-child", "9-latest-child", "a composite answers with its first child",
        lambda: mock.patch.object(SharedReadEnds, "latest", _first_child),
    ),
    Mutant(
        "ticket-survives-failure", "11-failure-no-ticket", "a failed launch leaves its ticket in the mailbox",
        lambda: mock.patch.object(Mailbox, "clear", _clears_nothing),
    ),
    Mutant("one-staging-buffer", "12-host-staging", "every batch is packed into the same host memory", _one_buffer),
    Mutant(
        "no-read-after-write", "13-writes-are-separate", "the forward does not wait for the plan's table writes",
        lambda: mock.patch.object(Runner, "execute", _without_raw),
    ),
    Mutant(
        "evicts-one-early", "15-tokens", "the oldest visible token of the window is evicted",
        lambda: mock.patch.object(Holdings, "evict", _evicts_early),
    ),
)  # fmt: skip
