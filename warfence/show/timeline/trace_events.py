"""A timeline as Trace Event JSON, the format that Perfetto and chrome://tracing open.

The JSON Object Format of the public specification ("Trace Event Format", Google): "X" slices with `ts` and `dur` in
microseconds, "M" names of processes and threads, "s" and "f" the two ends of a flow, "i" instants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from warfence.show.timeline.model import Arrow, Mark, Slice, Timeline

Event = dict[str, Any]
PID = 1
INSIDE = 0.001  # an end of a flow lies this much before the end of its slice, so that it lies in it
READ, WRITE, WAIT = "shared read", "shared write", "wait"
# Names of chrome://tracing's own palette; Perfetto chooses its colours by the name of the slice.
COLOURS = {READ: "bad", WRITE: "terrible", WAIT: "grey"}


def trace_events(*timelines: Timeline, pid: int = PID) -> dict[str, Any]:
    """The document. Each timeline is a process, from `pid` on; each track is a thread of it, in the order of the tracks."""
    events: list[Event] = []
    flows = 0
    for process, timeline in enumerate(timelines, start=pid):
        tids = {track: i for i, track in enumerate(timeline.tracks, start=1)}
        of_track = {track: [s for s in timeline.slices if s.track == track] for track in tids}
        events += _names(timeline, process, tids)
        for one in timeline.slices:
            events.append(_slice(one) | {"pid": process, "tid": tids[one.track]})
        for mark in timeline.marks:
            events.append(_instant(mark) | {"pid": process, "tid": tids[mark.track]})
        for arrow in timeline.arrows:
            ends = _flow(arrow, flows, of_track)
            for end, track in zip(ends, (arrow.source, arrow.target), strict=False):
                events.append(end | {"pid": process, "tid": tids[track]})
            flows += 1
    about = {str(process): _about(timeline) for process, timeline in enumerate(timelines, start=pid)}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}


def _about(timeline: Timeline) -> dict[str, str]:
    zero = {} if timeline.unix_ns is None else {"unix_ns at 0": str(timeline.unix_ns)}
    return {"title": timeline.title, "unit": timeline.unit, **timeline.about, **zero}


def _names(timeline: Timeline, pid: int, tids: dict[str, int]) -> list[Event]:
    def about(what: str, tid: int, **args: object) -> Event:
        return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}

    events = [about("process_name", 0, name=timeline.title), about("process_sort_index", 0, sort_index=pid)]
    for track, tid in tids.items():
        events += [about("thread_name", tid, name=track), about("thread_sort_index", tid, sort_index=tid)]
    return events


def _slice(one: Slice) -> Event:
    what = READ if one.reads else WRITE if one.writes else WAIT if one.kind == "wait" else one.kind
    args: dict[str, object] = {"launch": one.launch} if one.launch else {}
    for name, tables in (("reads", one.reads), ("writes", one.writes), ("stages", one.stages[1:] and one.stages)):
        args |= {name: list(tables)} if tables else {}
    event = {"ph": "X", "name": one.name, "cat": what, "ts": one.begin, "dur": one.end - one.begin}
    colour = {"cname": COLOURS[what]} if what in COLOURS else {}
    return event | colour | {"args": args | dict(one.detail)}


def _instant(mark: Mark) -> Event:
    args = {"launch": mark.launch}
    return {"ph": "i", "name": mark.name, "cat": "boundary", "ts": mark.time, "s": "p", "args": args}


def _flow(arrow: Arrow, number: int, of_track: Mapping[str, Sequence[Slice]]) -> list[Event]:
    """Both ends, each inside the slice that ends there; none where one of them has no slice."""
    ends = [_inside(of_track[arrow.source], arrow.recorded), _inside(of_track[arrow.target], arrow.went_on)]
    if None in ends:
        return []
    begin, end = ends
    args = {"launch": arrow.launch, "recorded": arrow.recorded, "went on": arrow.went_on}
    common = {"name": arrow.name, "cat": "fence" if arrow.war else "order", "id": number, "args": args}
    return [common | {"ph": "s", "ts": begin}, common | {"ph": "f", "bp": "e", "ts": end}]


def _inside(slices: Sequence[Slice], time: float) -> float | None:
    """The time, moved into the last slice that began by then."""
    found = [s for s in slices if s.begin <= time]
    if not found:
        return None
    last = max(found, key=lambda s: s.end)
    time = min(time, last.end)
    return max(time - INSIDE, (last.begin + time) / 2)
