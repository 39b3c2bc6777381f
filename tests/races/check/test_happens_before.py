"""The one pass against reachability in the graph of all events, on small random programs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warfence.races.check.events import ACCESSES, HOST, Event
from warfence.races.check.happens_before import analyse

LANES = (HOST, "a", "b", "c")
lanes, names = st.sampled_from(LANES), st.sampled_from(("e", "f"))
spans = st.tuples(st.integers(0, 5), st.integers(1, 3))
accesses = st.builds(
    lambda kind, lane, stage, span, resource: Event(kind, lane, 0, stage, resource, span[0], span[0] + span[1]),
    st.sampled_from(("read", "write")), lanes, st.sampled_from(("", "s")), spans, st.sampled_from(("t", "u")),
)  # fmt: skip
records = st.builds(lambda lane, name: Event("record", lane, event=name), st.sampled_from(LANES[1:]), names)
waits = st.builds(lambda lane, name: Event("wait", lane, event=name), st.sampled_from(LANES[1:]), names)
lane_waits = st.builds(lambda lane, other: Event("wait_lane", lane, other=other), lanes, st.sampled_from(LANES[1:]))
syncs = st.builds(lambda name: Event("host_sync", HOST, event=name), names)
programs = st.lists(st.one_of(accesses, accesses, records, waits, lane_waits, syncs), max_size=24)


def ancestors(events: list[Event]) -> list[set[int]]:
    """Of each event all that are before it in every permitted run. Edges come from earlier events only."""
    before: list[set[int]] = []
    last: dict[str, int] = {}
    held: dict[str, int] = {}
    for index, event in enumerate(events):
        edges = {last[lane] for lane in {event.lane, HOST} if lane in last}
        if event.other:
            edges |= {last[event.other]} if event.other in last else set()
            # a wait_lane records on the other lane, which carries what the host knows: an ancestor by HOST already
        elif event.kind == "record":
            held[event.event] = index
        elif event.kind in ("wait", "host_sync") and event.event in held:
            edges.add(held[event.event])
        before.append(edges.union(*(before[edge] for edge in edges)))
        last[event.lane] = index
    return before


def conflict(a: Event, b: Event) -> bool:
    if not {a.kind, b.kind} <= ACCESSES or a.lane == b.lane or a.resource != b.resource:
        return False
    return "write" in (a.kind, b.kind) and a.begin < b.end and b.begin < a.end


def compare(events: list[Event]) -> None:
    """All pairs found are racy, and every access that races with an earlier one is found."""
    before = ancestors(events)
    racy = {
        (i, j) for j, b in enumerate(events) for i, a in enumerate(events[:j]) if conflict(a, b) and i not in before[j]
    }
    found = {(race.first, race.second) for race in analyse(events).races}
    assert found <= racy
    assert {second for _, second in found} == {second for _, second in racy}


@settings(max_examples=30, deadline=None)
@given(programs)
def test_the_accesses_found_racing_are_those_that_the_graph_does_not_order(events: list[Event]) -> None:
    compare(events)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(programs)
def test_they_are_in_very_many_programs_too(events: list[Event]) -> None:
    compare(events)


def unneeded(events: list[Event], index: int) -> bool:
    """Whether the same accesses race without this wait."""
    without = events[:index] + events[index + 1 :]
    return not analyse(events).races and not analyse(without).races


@settings(max_examples=20, deadline=None)
@given(programs)
def test_a_wait_that_no_conflict_needs_can_be_left_out_without_a_race(events: list[Event]) -> None:
    found = analyse(events)
    if not found.races:
        for edge, _ in found.over_fencing():
            assert edge.used or unneeded(events, edge.index)
