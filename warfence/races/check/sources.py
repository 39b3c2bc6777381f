"""Ticket sources under names: every record, and every block of the host on one, stands in the log."""

from __future__ import annotations

from collections.abc import Callable

from warfence.core.fence import TicketSource
from warfence.races.check.events import HOST, Event
from warfence.races.check.places import call_site

Append = Callable[[Event], object]
REMEMBERED = 256  # sources that may be recorded again; a backend's ring of events is shorter


class RecordedSource:
    """Implements `warfence.core.fence.TicketSource` around a backend's own source."""

    __slots__ = ("_append", "event", "generation", "inner")

    def __init__(self, inner: TicketSource, event: str, append: Append) -> None:
        self.inner, self.event, self._append = inner, event, append
        self.generation = 0  # how often it was recorded

    def recorded_for(self) -> int | None:
        return self.inner.recorded_for()

    def done(self) -> bool:
        done = self.inner.done()
        if done:
            self._append(Event("host_sync", HOST, event=self.event, where=call_site(2)))
        return done

    def synchronize(self) -> None:
        self.inner.synchronize()
        self._append(Event("host_sync", HOST, event=self.event, where=call_site(2)))


class Sources:
    """Gives each source its name, the same one when a backend records on the same source again."""

    def __init__(self, append: Append) -> None:
        self.append = append
        self._known: dict[int, RecordedSource] = {}  # by identity; in order of the last record
        self._count = 0

    def recorded(self, source: TicketSource, lane: str, launch: int, place: str, marker: str = "") -> RecordedSource:
        """Log that the lane recorded on the source, on behalf of the launch. marker: what to call it, where it is one."""
        made = self._known.pop(id(source), None)
        if made is None:
            self._count += 1
            made = RecordedSource(source, f"{marker or f'ticket of {lane}'} #{self._count}", self.append)
            if len(self._known) >= REMEMBERED:
                del self._known[next(iter(self._known))]
        self._known[id(source)] = made
        made.generation += 1
        self.append(Event("record", lane, launch, event=made.event, generation=made.generation, where=place))
        return made

    def of(self, source: TicketSource) -> tuple[str, TicketSource]:
        """(name, the backend's own source) of what a ticket names. What was not recorded here has a name that nothing records."""
        if isinstance(source, RecordedSource) and source._append is self.append:
            return source.event, source.inner
        return f"{type(source).__name__} that was recorded elsewhere, or never", source
