"""The partial order of a trace when its calls are really made in its order.

With several host threads a call is made only after those of other threads that it depends on, and so after all that these
threads had to do before. The explorer leaves that out: such steps race all the same, in another order of calls.
"""

from __future__ import annotations

from dataclasses import replace

from warfence.races.scenarios.interleave import dependent
from warfence.races.scenarios.order import Order
from warfence.races.scenarios.steps import Trace


def called_order(trace: Trace) -> Order:
    """The order that a run of this trace can have."""
    ops = trace.ops
    if len({op.thread for op in ops}) == 1:
        return Order(trace.steps)
    extra: list[set[int]] = []
    behind: dict[str, set[int]] = {op.thread: set() for op in ops}  # what each thread's next call comes after
    own: dict[str, list[int]] = {op.thread: [] for op in ops}  # the steps of each thread itself
    for step in trace.steps:
        if step.lane == step.thread:
            own[step.lane].append(step.id)
    for call, op in enumerate(ops):
        for other in range(call):
            if ops[other].thread != op.thread and dependent(ops[other], op):
                behind[op.thread] |= extra[other]
                behind[op.thread].update([one for one in own[ops[other].thread] if trace.steps[one].call < other][-1:])
        extra.append(set(behind[op.thread]))
    return Order([replace(step, after=tuple(sorted({*step.after, *extra[step.call]}))) for step in trace.steps])
