"""A trace as an event log, so that the checker judges the same order of calls. For programs with one host thread."""

from __future__ import annotations

from collections.abc import Iterator

from warfence.races.check.events import Event, Kind
from warfence.races.check.log_file import Log
from warfence.races.scenarios.steps import Step, Trace

_ACCESS: dict[str, Kind] = {"reads": "read", "writes": "write", "donates": "write", "allocates": "alloc"}


def log(trace: Trace) -> Log:
    """The calls of a finished trace. What the handle of an array orders is a record and a wait of their own."""
    implied = {earlier for step in trace.steps if step.kind in ("access", "records") for earlier in step.joins}
    events: list[Event] = []
    for step in trace.steps:
        if step.kind == "receives" and step.needs:
            break  # nothing ever comes, so that the host makes no call behind it
        events += _events(step)
        if step.id in implied:
            events.append(Event("record", step.lane, event=_handle(step.id), generation=1))
    return Log(tuple(events))


def _handle(step: int) -> str:
    return f"array, step {step}"


def _events(step: Step) -> Iterator[Event]:
    where = f"line {step.line}, statement {'.'.join(map(str, step.path))}"
    lane, launch = step.lane, step.launch
    if step.kind in ("access", "records"):
        for earlier in dict.fromkeys(step.joins):
            yield Event("wait", lane, event=_handle(earlier), where=where)
    if step.kind == "access":
        for one in step.reaches:
            stage = step.stage or f"step {step.id}"
            yield Event(_ACCESS[one.verb], lane, launch, stage, one.memory, one.begin, one.end, where=where)
    elif step.kind == "records":
        yield Event("record", lane, launch, event=step.event, generation=step.number, where=where)
    elif step.kind == "awaits":
        yield Event("await", lane, event=step.event, generation=step.needs, where=where)
    elif step.kind in ("syncs", "polls"):
        yield Event("host_sync", lane, event=step.event, other=step.other, where=where)
    elif step.kind in ("waits", "takes") and step.other:
        yield Event("wait_lane", lane, other=step.other, where=where)
    elif step.kind in ("waits", "takes") and step.event:
        yield Event("wait", lane, launch, event=step.event, where=where)
