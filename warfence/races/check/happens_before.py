"""Conflicting accesses that nothing orders, in one pass over the log.

Two accesses conflict when their lanes differ, their intervals overlap and one of them writes. A lane is in order with
itself; a record carries the lane's clock, a wait joins what the event held at the call, and every enqueue carries the
host's clock. Of several earlier accesses of one lane the last is named: an edge behind it covers the others.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from operator import itemgetter
from typing import NamedTuple

from warfence.races.check.cells import Access, Cells, Interval
from warfence.races.check.clocks import Clocks, Edge
from warfence.races.check.events import HOST, STEPS, Event
from warfence.races.check.standing import in_order

MOST_NAMED = 16  # racing pairs of one access that are named; further ones are counted
MOST_KEPT = 8  # accesses of one cell that race with one another, and are compared with what comes
NEITHER = STEPS | {"alloc", "free"}  # no access, and no edge
LANE, OTHER = Event._fields.index("lane"), Event._fields.index("other")


class Pair(NamedTuple):
    """Two conflicting accesses without an order, by their places in the log.

    position: of the first one on its lane. known: up to where the second one's lane was ordered behind that lane.
    """

    first: int
    second: int
    position: int
    known: int


class Held(NamedTuple):
    """What an event holds: its record's place in the log, its lane, and the clock there."""

    place: int
    lane: int
    clock: tuple[int, ...]


class Analysis:
    """What one pass found. Places are indices into `events`."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.races: list[Pair] = []
        self.unnamed = 0  # racing pairs beyond `MOST_NAMED`
        self.never_recorded: list[int] = []
        self.stale: list[tuple[int, int]] = []  # (wait, the record that the event held)
        self.standing: list[int] = []  # where each lane stands that can never go on
        self.lanes = _lanes(events)
        self.clocks = Clocks(len(self.lanes))

    def over_fencing(self) -> list[tuple[Edge, int]]:
        """(edge, operations waited for in vain), where no instance of the same wait needed all that it waits for.

        The same wait: of one kind, one place in the code, between the same lanes. Not judged: instances that bring
        nothing new, those behind which their lane does nothing more, and lanes that race (there a wait is wrong rather
        than too strong).
        """
        return [one for same in self._waits() if all(late > 0 for _, late in same) for one in same]

    def steady(self) -> list[list[tuple[Edge, int]]]:
        """Waits that may be too strong in each turn of a loop, by what that turn needs; `analyse` with `weaker` decides.

        Each is a list of its instances, as of `over_fencing`. None where something races, or where a lane waits too strongly
        anyway.
        """
        strong = {edge.waiter for edge, _ in self.over_fencing()}
        found = []
        for same in () if self.races else self._waits():
            news = [edge for edge, _ in same if edge.upto > edge.known]
            if len(news) > 1 and news[0].waiter not in strong and all(edge.later < edge.upto for edge in news):
                found.append([(edge, edge.upto - max(edge.later, edge.known)) for edge in news])
        return found

    def _waits(self) -> list[list[tuple[Edge, int]]]:
        racing = {tuple(self.lanes[self.events[at].lane] for at in (race.second, race.first)) for race in self.races}
        waits: dict[tuple[object, ...], list[tuple[Edge, int]]] = {}
        for edge in self.clocks.edges:
            goes_on = self.clocks.now[edge.waiter][edge.waiter] > edge.placed
            if edge.upto > edge.known and (edge.used or goes_on) and (edge.waiter, edge.source) not in racing:
                event = self.events[edge.index]
                same = waits.setdefault((event.kind, event.where, edge.waiter, edge.source), [])
                same.append((edge, edge.upto - max(edge.needed, edge.known)))
        return list(waits.values())


def analyse(events: Sequence[Event], weaker: Container[int] = ()) -> Analysis:
    """Go through the log once. weaker: places of waits that reach one operation less far than they do."""
    found = Analysis(events)
    lanes, clocks = found.lanes, found.clocks
    cells: dict[str, Cells] = {}
    held: dict[str, Held] = {}
    operation: list[tuple[int, str] | None] = [None] * len(lanes)
    for index, event in in_order(events, found.standing):
        kind, name, launch, stage, resource, begin, end, event_name, _, other_name, _ = event
        lane = lanes[name]
        clock = clocks.enqueue(lane)
        if kind == "read" or kind == "write":
            if not stage or operation[lane] != (launch, stage):
                clock[lane] += 1
                operation[lane] = (launch, stage)
            if (there := cells.get(resource)) is None:
                there = cells[resource] = Cells()
            intervals = there.covering(begin, end)
            _access(found, intervals, (lane, clock[lane], index), kind, clock)
            if len(intervals) > 1:
                there.join(intervals)
            continue
        operation[lane] = None
        if kind == "record":
            held[event_name] = Held(index, lane, tuple(clock))
        elif kind in NEITHER:  # a block changes hands, its memory touched by nobody; or a stage begins
            continue
        elif other_name:
            other = lanes[other_name]
            clocks.wait(index, lane, other, _weakened(clocks.enqueue(other), other, index in weaker))
            operation[other] = None
        elif (record := held.get(event_name)) is None:
            found.never_recorded.append(index)
        else:
            if _is_stale(event, events[record.place]):
                found.stale.append((index, record.place))
            if kind != "refused":
                clocks.wait(index, lane, record.lane, _weakened(record.clock, record.lane, index in weaker))
    return found


def _weakened(clock: Sequence[int], lane: int, weaker: bool) -> Sequence[int]:
    return tuple(position - (weaker and at == lane) for at, position in enumerate(clock)) if weaker else tuple(clock)


def _access(found: Analysis, intervals: list[Interval], access: Access, kind: str, clock: list[int]) -> None:
    """Note an access of all these intervals, and with which earlier ones it races."""
    lane = access[0]
    racing: dict[int, Pair] = {}
    for interval in intervals:
        before, reads = interval.writes, interval.reads
        if before and (len(before) > 1 or before[0][0] != lane):
            before = _loose(found, before, access, clock, racing)
        elif kind != "read":
            before = []
        alone = not reads or (len(reads) == 1 and reads[0][0] == lane)
        if kind == "read":
            interval.reads = [access] if alone else [*(one for one in reads if one[0] != lane), access]
        else:
            interval.reads = [] if alone else _loose(found, reads, access, clock, racing)
            interval.writes = [*before[-MOST_KEPT:], access]
    if racing:
        found.races += racing.values()


def _loose(
    found: Analysis, earlier: list[Access], access: Access, clock: list[int], racing: dict[int, Pair]
) -> list[Access]:
    """Those that nothing orders before this access; the others are credited to the edges that order them."""
    kept = []
    lane = access[0]
    for one in earlier:
        other, position, place = one
        if other == lane:
            continue
        if clock[other] >= position:
            if other:
                found.clocks.use(lane, other, position)
        else:
            kept.append(one)
            if place not in racing and len(racing) >= MOST_NAMED:
                found.unnamed += 1
                continue
            racing[place] = Pair(place, access[2], position, clock[other])
    return kept


def _is_stale(wait: Event, record: Event) -> bool:
    return (0 < wait.launch != record.launch) or (0 < wait.generation != record.generation)


def _lanes(events: Sequence[Event]) -> dict[str, int]:
    """Every lane's number, the host's 0."""
    names = dict.fromkeys(map(itemgetter(LANE), events)) | dict.fromkeys(map(itemgetter(OTHER), events))
    names.pop("", None)
    names.pop(HOST, None)
    return {name: number for number, name in enumerate((HOST, *names))}
