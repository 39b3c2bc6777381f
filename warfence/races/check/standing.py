"""Logs in which a lane awaits a record that comes later: the order in which they can run, and who stands for ever.

Any other log runs in its own order, since a wait binds to what is there at the call. An await may stand, and all that is
enqueued on its lane stands behind it, while the host goes on, and stops only where it waits for what stands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from warfence.races.check.events import HOST, Event

KIND = Event._fields.index("kind")
Turn = tuple[int, Event]  # its place in the log, and the event


def in_order(events: Sequence[Event], standing: list[int]) -> Iterator[Turn]:
    """Each event when its turn comes: right behind what it stood for, and so before any later call of the host.

    standing: filled with the places at which lanes stand in the end.
    """
    if "await" in map(itemgetter(KIND), events):
        return _Run(events, standing).turns()
    return enumerate(events)


class _Called(NamedTuple):
    """An event that the host has called. needs: the record that has to run before it; empty: none."""

    turn: Turn
    needs: str = ""


class _Run:
    """Events are renamed, so that every record, and every wait that is bound to it, has a name of its own."""

    def __init__(self, events: Sequence[Event], standing: list[int]) -> None:
        self._events, self._standing = events, standing
        self._queues: dict[str, deque[_Called]] = {event.lane: deque() for event in events}
        self._records: dict[str, int] = {}  # of each event, those that the host has called
        self._ran: set[str] = set()

    def turns(self) -> Iterator[Turn]:
        for index, event in enumerate(self._events):
            called = self._bind(index, event)
            self._queues[event.lane].append(called)
            yield from self._go_on()
            if self._queues.get(HOST):
                break
        self._standing += sorted(queue[0].turn[0] for queue in self._queues.values() if queue)

    def _bind(self, index: int, event: Event) -> _Called:
        """The event under the name of the one record that it is, or waits for."""
        if event.kind == "await":
            name = _name(event.event, event.generation)
            return _Called((index, event._replace(event=name, generation=0)), name)
        if event.kind == "record":
            number = self._records[event.event] = self._records.get(event.event, 0) + 1
            return _Called((index, event._replace(event=_name(event.event, number))))
        if behind := self._queues.get(event.other):  # a point behind what stands on that lane
            name = _name(event.other, -index)
            behind.append(_Called((index, Event("record", event.other, event=name))))
            return _Called((index, event._replace(event=name, other="")), name)
        if number := self._records.get(event.event, 0):
            name = _name(event.event, number)
            return _Called((index, event._replace(event=name)), "" if event.kind == "refused" else name)
        return _Called((index, event))

    def _go_on(self) -> Iterator[Turn]:
        """Whatever can run on any lane, as far as it can."""
        moved = True
        while moved:
            moved = False
            for queue in self._queues.values():
                while queue and (not queue[0].needs or queue[0].needs in self._ran):
                    turn = queue.popleft().turn
                    if turn[1].kind == "record":
                        self._ran.add(turn[1].event)
                    moved = True
                    yield turn


def _name(event: str, number: int) -> str:
    return f"{event}, record {number}"
