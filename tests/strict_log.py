"""What a log of the strict backend says happened."""

from __future__ import annotations

from collections.abc import Iterable

from warfence.races.check.events import Event


def writes_before_earlier_reads(log: Iterable[Event]) -> list[tuple[Event, Event]]:
    """Every (write, read) of the log in which a write landed before a read of an earlier launch (law 1).

    Only pairs over one table. Empty when the fence held, however the values came out.
    """
    found = []
    landed: list[Event] = []
    for event in log:
        if event.kind == "write":
            landed.append(event)
        elif event.kind == "read":
            found += [(w, event) for w in landed if event.launch <= w.launch and w.resource == event.resource]
    return found
