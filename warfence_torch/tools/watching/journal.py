"""What happened, in the order of the host's calls, also where a lane's thread gets to it later.

Work for a host lane takes its place at the call of `submit`; what it does on the lane's thread is filled in there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from warfence.races.check.events import HOST, Event, Kind


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one piece of work: its lane, where it was submitted, and what it did."""

    lane: str
    where: str
    events: list[Event] = field(default_factory=list)


class Journal:
    """The events of one watch, the names of lanes and events, and what could not be seen.

    names: the user's names of host lanes, events and graphs.
    """

    def __init__(self, names: Mapping[Any, str]) -> None:
        self.launches = 0
        self.host_thread: int | None = threading.get_ident()
        self._parts: list[list[Event]] = []
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._given = {id(thing): name for thing, name in names.items()}
        self._names: dict[Any, str] = {}
        self._taken = {HOST}
        self._numbers: dict[str, int] = {}
        self._kept: list[Any] = list(names)  # what is named by its id, so that no id is used twice
        self._generations: dict[str, int] = {}
        self._unseen: dict[str, None] = {}
        self._missed: dict[str, None] = {}

    def append(self, event: Event) -> None:
        """At this place of the log: inside the work that this thread does for a lane, else now."""
        slot = self.slot
        if slot is not None:
            slot.events.append(event)
        else:
            self._parts.append([event])

    def waited(self, where: str, event: str = "", other: str = "", generation: int = 0) -> None:
        """A blocking call came back, or a question got yes: `event`, or all of lane `other`, is done.

        In a work that is a wait of its lane. Of other threads than the watch's nobody knows what they order: left out.
        """
        slot = self.slot
        if slot is not None:
            kind: Kind = "wait" if event else "wait_lane"
            slot.events.append(Event(kind, slot.lane, 0, event=event, generation=generation, other=other, where=where))
        elif self.on_host:
            self.append(Event("host_sync", HOST, 0, event=event, generation=generation, other=other, where=where))

    @property
    def on_host(self) -> bool:
        """Whether this thread's calls count as the host's: the thread that began the watch, while it lasts."""
        return threading.get_ident() == self.host_thread

    @property
    def slot(self) -> Slot | None:
        """The work that this thread is doing for a host lane."""
        return getattr(self._thread, "slot", None)

    def reserve(self, lane: str, where: str) -> Slot:
        """A place for work that the host submits here and now."""
        slot = Slot(lane, where)
        self._parts.append(slot.events)
        return slot

    @contextmanager
    def inside(self, slot: Slot) -> Iterator[None]:
        """This thread does that work."""
        self._thread.slot = slot
        try:
            yield
        finally:
            self._thread.slot = None

    def name(self, thing: object, otherwise: str) -> str:
        """The name of a lane, event or graph. One that is taken, or that ends with a blank, gets a number."""
        key = id(thing)
        with self._lock:
            if key not in self._names:
                name = base = self._given.get(key, otherwise)
                while name in self._taken or name.endswith(" "):
                    self._numbers[base] = self._numbers.get(base, 0 if base.endswith(" ") else 1) + 1
                    name = f"{base.rstrip()} {self._numbers[base]}"
                self._taken.add(name)
                self._names[key] = name
                self._kept.append(thing)
            return self._names[key]

    def generation(self, event: str) -> int:
        """The number of the next record of this event."""
        with self._lock:
            number = self._generations[event] = self._generations.get(event, 0) + 1
            return number

    def generation_is_new(self, event: str, number: int) -> bool:
        """True once for each record of an event that counts its records itself; such an event never counts back."""
        with self._lock:
            if self._generations.get(event, 0) >= number:
                return False
            self._generations[event] = number
            return True

    def limit(self, sentence: str) -> None:
        """Say what no watch of this kind sees."""
        self._unseen[sentence] = None

    def miss(self, sentence: str) -> None:
        """Say what happened, may matter, and is not in the log: the verdict is incomplete."""
        self._missed[sentence] = None

    @property
    def unseen(self) -> tuple[str, ...]:
        return tuple(self._unseen)

    @property
    def missed(self) -> tuple[str, ...]:
        return tuple(self._missed)

    def forget(self) -> None:
        """Let go of what was named: a graph that lives on in here would end in the collector's time, not in its owner's."""
        self._kept.clear()

    def events(self) -> tuple[Event, ...]:
        """The whole log. Only once all work is done."""
        return tuple(chain.from_iterable(self._parts))
