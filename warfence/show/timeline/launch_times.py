"""A timeline in a few numbers: for each launch when its reads end, when the schedule lane goes on, when it is over."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from warfence.show.timeline.model import Timeline


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """Times of one launch, from its first stage on, in the timeline's unit. None: not in the timeline.

    goes_on: where a lane goes on that waited for this launch (a ticket, or all of the forward lane). written: the end of
    the first table write that was enqueued behind this launch.
    """

    launch: int
    mode: str
    reads_end: float | None
    goes_on: float | None
    written: float | None
    over: float


def launch_times(timeline: Timeline) -> list[LaunchTimes]:
    """One for each launch that lies in the timeline as a whole."""
    found = []
    begins = {n: timeline.span(n, n)[0] for n in timeline.launches}
    for launch in timeline.whole_launches:
        begin, over = timeline.span(launch, launch)
        behind = min((b for b in begins.values() if b > begin), default=math.inf)
        reads_end = timeline.boundary(launch)
        waits = [a.went_on for a in timeline.arrows if a.war and begin <= a.recorded < behind]
        goes_on = min(waits, default=None)
        writes = [s.end for s in timeline.slices if s.writes and s.launch == launch]
        times = reads_end, goes_on, min(writes, default=None)
        since = [None if time is None else time - begin for time in times]
        found.append(LaunchTimes(launch, timeline.mode(launch), since[0], since[1], since[2], over - begin))
    return found


def document(timeline: Timeline) -> dict[str, Any]:
    """The same as plain data, for JSON."""
    launches = [asdict(one) for one in launch_times(timeline)]
    return {"title": timeline.title, "unit": timeline.unit, "about": dict(timeline.about), "launches": launches}
