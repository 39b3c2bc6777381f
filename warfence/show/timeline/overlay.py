"""A timeline laid over what a framework's profiler wrote of the same run, as torch's does: one file, one clock."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from warfence.core.errors import InputError
from warfence.host.files import read_input
from warfence.show.timeline.model import Timeline
from warfence.show.timeline.trace_events import trace_events

BASE = "baseTimeNanoseconds"  # the time of day, in nanoseconds since the epoch, that the profiler's `ts` count from


def overlay(timeline: Timeline, profile: Path) -> dict[str, Any]:
    """The profiler's document with the timeline in it, as a process of its own, above the profiler's.

    profile: Trace Event JSON that names its clock's zero, such as what `torch.profiler` exports, also
    gzipped. Both clocks are the time of day; they agree to some
    microseconds on the CPU, and beside a GPU to what the timeline says of its clocks.
    """
    if timeline.unix_ns is None:
        raise InputError("a timeline in virtual time lies over no profile; trace a backend with a clock")
    document = _read(profile)
    shift = (timeline.unix_ns - int(document[BASE])) / 1e3
    taken = {event["pid"] for event in document["traceEvents"] if isinstance(event.get("pid"), int)}
    pid = next(n for n in range(1, len(taken) + 2) if n not in taken)
    ours = trace_events(timeline, pid=pid)
    for event in ours["traceEvents"]:
        if "ts" in event:
            event["ts"] += shift
        if "id" in event:
            event["id"] = f"warfence {event['id']}"  # flows are told apart by their ids
        if event["name"] == "process_sort_index":
            event["args"] = {"sort_index": -1}
    events = [*document["traceEvents"], *ours["traceEvents"]]
    return {**document, "traceEvents": events, "otherData": ours["otherData"]}


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = read_input(path, f"'{path}'", "give a trace of the framework's profiler")
        document = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    except (OSError, EOFError, ValueError, RecursionError) as cause:
        raise InputError(f"'{path}' cannot be read as a profile: {cause}") from cause
    if not isinstance(document, dict) or BASE not in document or "traceEvents" not in document:
        raise InputError(
            f"'{path}' is no profile that a timeline can lie over: it has no '{BASE}'; let the profiler export Trace Event JSON"
        )
    return document
