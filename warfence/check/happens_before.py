"""Conflicting accesses that nothing orders, in one pass over the log.

Two accesses conflict when their lanes differ, their intervals overlap and one of them writes. A lane is in order with
itself; a record carries the lane's clock, a wait joins what the event held at the call, and every enqueue carries the
host's clock. Of several earlier accesses of one lane the last is named: an edge behind it covers the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from warfence.check.cells import Access, Cells
from warfence.check.clocks import Clocks, Edge
from warfence.check.events import HOST, WAITS, Event
from warfence.check.standing import in_order


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
        racing = {tuple(self.lanes[self.events[at].lane] for at in (race.second, race.first)) for race in self.races}
        waits: dict[tuple[object, ...], list[tuple[Edge, int]]] = {}
        for edge in self.clocks.edges:
            goes_on = self.clocks.now[edge.waiter][edge.waiter] > edge.placed
            if edge.upto > edge.known and (edge.used or goes_on) and (edge.waiter, edge.source) not in racing:
                event = self.events[edge.index]
                same = waits.setdefault((event.kind, event.where, edge.waiter, edge.source), [])
                same.append((edge, edge.upto - max(edge.needed, edge.known)))
        return [one for same in waits.values() if all(late > 0 for _, late in same) for one in same]


def analyse(events: Sequence[Event]) -> Analysis:
    """Go through the log once."""
    found = Analysis(events)
    lanes, clocks = found.lanes, found.clocks
    cells: dict[str, Cells] = {}
    held: dict[str, Held] = {}
    operation: list[tuple[int, str] | None] = [None] * len(lanes)
    for index, event in in_order(events, found.standing):
        lane = lanes[event.lane]
        clock = clocks.enqueue(lane)
        kind = event.kind
        if kind == "read" or kind == "write" or kind == "alloc":
            this = (event.launch, event.stage)
            if not event.stage or operation[lane] != this:
                clock[lane] += 1
                operation[lane] = this
            if (there := cells.get(event.resource)) is None:
                there = cells[event.resource] = Cells()
            _access(found, there, Access(lane, clock[lane], index), event, clock)
            continue
        operation[lane] = None
        if kind == "record":
            held[event.event] = Held(index, lane, tuple(clock))
        elif kind == "free":
            continue
        elif event.other:
            other = lanes[event.other]
            clocks.wait(index, lane, other, tuple(clocks.enqueue(other)))
            operation[other] = None
        elif (record := held.get(event.event)) is None:
            found.never_recorded.append(index)
        else:
            if _is_stale(event, events[record.place]):
                found.stale.append((index, record.place))
            if kind != "refused":
                clocks.wait(index, lane, record.lane, record.clock)
    return found


def _access(found: Analysis, cells: Cells, access: Access, event: Event, clock: list[int]) -> None:
    writes, lane = event.kind != "read", access.lane
    intervals = cells.covering(event.begin, event.end)
    racing: set[int] = set()

    def loose(earlier: list[Access]) -> list[Access]:
        """Those that nothing orders before this access; the others are credited to the edges that order them."""
        kept = []
        for one in earlier:
            other, position, place = one
            if other == lane:
                continue
            if clock[other] >= position:
                if other:
                    found.clocks.use(lane, other, position)
                continue
            kept.append(one)
            if place not in racing:
                racing.add(place)
                found.races.append(Pair(place, access.place, position, clock[other]))
        return kept

    for interval in intervals:
        before = interval.writes
        if before and (len(before) > 1 or before[0].lane != lane):
            before = loose(before)
        elif writes:
            before = []
        reads = interval.reads
        alone = not reads or (len(reads) == 1 and reads[0].lane == lane)
        if writes:
            interval.reads = [] if alone else loose(reads)
            interval.writes = [*before, access]
            if event.kind == "alloc":  # it stands for all that was done with the block before
                interval.reads, interval.writes = [], [access]
        else:
            interval.reads = [access] if alone else [*(one for one in reads if one.lane != lane), access]
    if len(intervals) > 1:
        cells.join(intervals)


def _is_stale(wait: Event, record: Event) -> bool:
    return (0 < wait.launch != record.launch) or (0 < wait.generation != record.generation)


def _lanes(events: Sequence[Event]) -> dict[str, int]:
    """Every lane's number, the host's 0."""
    names = dict.fromkeys(event.lane for event in events)
    names.update(dict.fromkeys(event.other for event in events if event.kind in WAITS and event.other))
    names.pop(HOST, None)
    return {name: number for number, name in enumerate((HOST, *names))}
