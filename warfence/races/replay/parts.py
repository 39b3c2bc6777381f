"""What a machine gets to run: the executables of every call, with the steps that the explorer made of it."""

from __future__ import annotations

from warfence.races.replay.machine import Part
from warfence.races.scenarios.steps import Trace


def parts_of(trace: Trace) -> list[list[list[Part]]]:
    """Of each call its executables: what lies between two cuts of a launch, with the steps that the explorer made of it."""
    steps: list[list[int]] = [[] for _ in trace.ops]
    for step in trace.steps:
        if step.kind in ("access", "records"):
            steps[step.call].append(step.id)
    found: list[list[list[Part]]] = []
    for call, op in enumerate(trace.ops):
        executables: list[list[Part]] = [[]]
        ids = iter(steps[call])
        inside = op.steps if op.kind == "launch" else (op,) if op.kind in ("access", "allocates") else ()
        for inner in inside:
            if inner.kind == "cuts":
                executables.append([])
            else:
                id = next(ids, None)
                executables[-1].append(Part(inner, None if id is None else trace.steps[id], call))
        found.append([parts for parts in executables if parts])
    return found


def outrun(trace: Trace) -> bool:
    """Whether a read names a launch whose write is not the last one called before it: a handle binds at the call."""
    last: dict[str, list[int]] = {}
    for step in trace.steps:
        for one in step.reaches:
            called = last.setdefault(one.memory, [])
            if one.verb in ("writes", "donates"):
                called.append(step.launch)
            elif one.launch and one.launch in _writers(trace, one.memory) and called[-1:] != [one.launch]:
                return True
    return False


def _writers(trace: Trace, memory: str) -> set[int]:
    return {step.launch for step in trace.steps for one in step.reaches if one.memory == memory and one.verb != "reads"}


def donates(trace: Trace) -> bool:
    """Whether the trace has arrays whose handles count."""
    kinds = ("keeps", "views", "drops")
    return any(
        op.kind in kinds or any(one.verb == "donates" for inner in (op, *op.steps) for one in inner.reaches)
        for op in trace.ops
    )
