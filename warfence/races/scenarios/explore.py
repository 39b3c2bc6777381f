"""The verdict of a scenario, by exploring everything that its host calls and waits permit.

What right means. In the serial meaning of a program each call takes effect when the host makes it. An interleaving is right
when every two conflicting accesses run in the order of their calls: then each read sees the same write as there, and
the memory ends the same. A program is `bad` if one permitted interleaving is not right, or if a read that names a launch
sees the write of another one.

Why that is found without trying all interleavings. With one host thread each wait is bound to one record at its call, so
what may happen is a partial order of steps. A conflicting pair that it does not order can run in either order: all that must
run before one of the two, then these two as called or the other way round. If it orders all pairs, all interleavings
are alike. So one trace decides, and what counts is conflicts, not length. Branches of a `choose` are tried one by one, and
where many differ by accesses only, in pairs (`warfence.races.scenarios.choices`); of
several host threads those orders of calls are tried that can differ (`warfence.races.scenarios.interleave`), and the order
of calls of each is the serial meaning there.

`cycle`: steps that can never run. `error`: a call that the runtime refuses aloud. `over`: right, but a wait is stronger than any
conflict needs (`warfence.races.scenarios.late`). The worst of all traces counts: error, cycle, bad, over, ok.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from warfence.core.errors import InputError
from warfence.races.scenarios.choices import FEW, MOST, combinations, variants
from warfence.races.scenarios.interleave import orders
from warfence.races.scenarios.late import Statement, Wait, judged, steady, too_strong
from warfence.races.scenarios.named import misread, needed, witness
from warfence.races.scenarios.operations import Memories, Op
from warfence.races.scenarios.order import Order, Pair, conflicts
from warfence.races.scenarios.program import Scenario
from warfence.races.scenarios.steps import Refused, Step, Trace
from warfence.races.scenarios.witness import Witness, choose, reversed_pair

MOST_TRACES = 20_000
WORST_FIRST = ("error", "cycle", "bad", "ok")


@dataclass(frozen=True)
class Outcome:
    """What exploration found. trace, order: where it was found, or the first one. traces: how many were looked at.

    reason: of an error or a cycle. witness: of a bad program; races: its pairs without an order. late: of an `over` one, the
    waits that could be earlier.
    """

    scenario: Scenario
    verdict: str
    trace: Trace
    order: Order
    traces: int = 1
    reason: str = ""
    witness: Witness | None = None
    races: tuple[Pair, ...] = ()
    late: tuple[Wait, ...] = ()

    @property
    def expected(self) -> bool:
        return self.verdict == self.scenario.expect


def explore(scenario: Scenario, values: Mapping[str, int] | None = None) -> Outcome:
    """Explore a scenario. values: parameters other than written in it. InputError: out of range, too many traces."""
    outcome = _explore(scenario, values, apart=True)
    count = combinations(scenario, values)
    if outcome.verdict != "over" or count <= FEW:
        return outcome
    if count > MOST:
        raise InputError(
            f"scenario '{scenario.id}' has no race in it, and waits that may be too strong: that has to be so in all {count} "
            f"combinations of its choices, and at most {MOST} are looked at; take fewer choices"
        )
    return _explore(scenario, values, apart=False)


def _explore(scenario: Scenario, values: Mapping[str, int] | None, apart: bool) -> Outcome:
    outcomes: list[Outcome] = []  # the first one of each verdict
    waits: list[Wait] = []
    until: dict[int, Outcome] = {}  # the trace in which each of `waits` was judged
    steadily: dict[Statement, tuple[Wait | None, Outcome]] = {}  # what each statement of a loop could be, in all traces
    count = 0
    for ops, memories in traces(scenario, values, apart):
        count += 1
        begin = len(waits)
        outcome = _judge(scenario, ops, memories, waits)
        until.setdefault(len(waits), outcome)
        if outcome.verdict == "ok":
            for statement, late in steady(outcome.order, waits[begin:]).items():
                if late is None or statement not in steadily:
                    steadily[statement] = late, outcome
        if outcome.verdict not in [one.verdict for one in outcomes]:
            outcomes.append(outcome)
    worst = min(outcomes, key=lambda one: WORST_FIRST.index(one.verdict))
    if worst.verdict != "ok":
        return replace(worst, traces=count)
    if strong := too_strong(waits):
        shown = next(one for end, one in until.items() if strong[0] in waits[:end])
        return replace(shown, verdict="over", late=tuple(strong), traces=count)
    for late, outcome in steadily.values():
        if late is not None:
            return replace(outcome, verdict="over", late=(late,), traces=count)
    return replace(worst, traces=count)


def traces(
    scenario: Scenario, values: Mapping[str, int] | None = None, apart: bool = True
) -> Iterator[tuple[list[Op], Memories]]:
    """Every order of host calls that can differ from the others. apart: choices that differ by accesses only, in pairs."""
    count = 0
    for threads, memories in variants(scenario, values, apart):
        for ops in orders(threads, memories):
            count += 1
            if count > MOST_TRACES:
                raise InputError(
                    f"scenario '{scenario.id}' has more than {MOST_TRACES} orders of host calls; "
                    f"take smaller parameters, fewer choices, or less that host threads share"
                )
            yield ops, memories


def run(ops: Iterable[Op], memories: Memories) -> Trace:
    """The trace of one order of calls. Refused when the runtime would say so aloud."""
    trace = Trace(memories)
    for op in ops:
        trace.call(op)
    trace.finish()
    return trace


def _judge(scenario: Scenario, ops: list[Op], memories: Memories, waits: list[Wait]) -> Outcome:
    """The verdict on one trace; `over` is left to the end, `waits` grows by what was judged here."""
    trace = Trace(memories)
    refused = None
    try:
        for op in ops:
            trace.call(op)
    except Refused as raised:
        refused = raised
    trace.finish()
    order = Order(trace.steps)
    if refused and not any(order.steps[one].lane == refused.op.thread for one in order.standing):  # the call is reached
        return Outcome(scenario, "error", trace, order, reason=str(refused))
    if order.standing:
        return Outcome(scenario, "cycle", trace, order, reason=_stands(order))
    pairs = conflicts(order)
    races = [pair for pair in pairs if not order.before(*pair)]
    if races:
        shown = reversed_pair(order, choose(races))
        return Outcome(scenario, "bad", trace, order, witness=shown, races=tuple(races))
    if wrong := list(misread(order)):
        loose = tuple(one.pair for one in wrong if one.pair is not None)
        return Outcome(scenario, "bad", trace, order, witness=witness(order, wrong[0]), races=loose)
    waits += judged(order, [*pairs, *needed(order)])
    return Outcome(scenario, "ok", trace, order)


def _stands(order: Order) -> str:
    """Where each lane stands that can never go on."""
    first: dict[str, Step] = {}
    for one in order.standing:
        first.setdefault(order.steps[one].lane, order.steps[one])
    return "; ".join(f"{lane} stands at line {step.line}: {step.title}" for lane, step in first.items())
