"""Lanes that await a record that comes later: what is in order all the same, and what can never go on."""

from __future__ import annotations

from warfence.races.check.events import HOST, Event
from warfence.races.check.findings import Findings, check
from warfence.races.check.log_file import Log


def log(*events: Event) -> Findings:
    return check(Log(events))


def awaits(lane: str, event: str, generation: int = 1) -> Event:
    return Event("await", lane, event=event, generation=generation)


def record(lane: str, event: str) -> Event:
    return Event("record", lane, event=event)


def touch(kind: str, lane: str, resource: str = "t") -> Event:
    return Event(kind, lane, 0, f"{kind} {resource}", resource, 0, 4)  # type: ignore[arg-type]


def test_an_await_orders_behind_a_record_that_is_called_later() -> None:
    assert log(awaits("s", "e"), touch("write", "s"), touch("read", "f"), record("f", "e")).findings == ()


def test_it_does_not_order_behind_what_comes_after_that_record() -> None:
    report = log(awaits("s", "e"), touch("write", "s"), record("f", "e"), touch("read", "f"))
    assert report.kinds() == {"race"}


def test_it_takes_the_record_of_its_generation() -> None:
    early, late = awaits("s", "e", 1), awaits("s", "e", 2)
    rest = (touch("write", "s"), record("f", "e"), touch("read", "f"), record("f", "e"))
    assert log(early, *rest).kinds() == {"race"}
    assert log(late, *rest).findings == ()


def test_what_stood_knows_what_the_host_knew_when_it_ended_that() -> None:
    """The record that ends the await was enqueued after the host had waited for the read."""
    begun = awaits("s", "e"), touch("write", "s"), touch("read", "f")
    learned, ended = Event("host_sync", HOST, other="f"), record("p", "e")
    assert log(*begun, learned, ended).findings == ()
    assert log(*begun, ended, learned).kinds() == {"race"}


def test_a_wait_binds_at_its_call_to_a_record_that_stands() -> None:
    standing = (
        awaits("f", "e"),
        touch("read", "f"),
        record("f", "g"),
        Event("wait", "s", event="g"),
        touch("write", "s"),
    )
    assert log(*standing, record("f", "g"), record("p", "e")).findings == ()


def test_a_wait_for_a_lane_that_stands_is_for_what_was_enqueued_there() -> None:
    standing = (awaits("f", "e"), touch("read", "f"), Event("wait_lane", "s", other="f"), touch("write", "s"))
    assert log(*standing, record("p", "e")).findings == ()
    late = (*standing, touch("read", "f", "u"), touch("write", "s", "u"), record("p", "e"))
    assert log(*late).kinds() == {"race"}


def test_a_cycle_names_the_lanes_and_where_each_stands() -> None:
    """F(2) waits for what stands behind C's wait, and C awaits the record that F(2) makes."""
    report = log(
        record("forward", "E"), awaits("copy", "E", 2), record("copy", "done"), Event("wait", "forward", event="done"),
        touch("read", "forward"), record("forward", "E"),
    )  # fmt: skip
    (finding,) = report.findings
    assert finding.kind == "wait-cycle"
    assert finding.what == ("nothing can go on: copy waits for record 2 of event 'E'; forward waits for event 'done'")
    assert finding.lines == (2, 4)


def test_the_twin_that_waits_for_the_record_that_is_there_goes_on() -> None:
    assert log(
        record("forward", "E"), awaits("copy", "E", 1), record("copy", "done"), Event("wait", "forward", event="done"),
        touch("read", "forward"), record("forward", "E"),
    ).findings == ()  # fmt: skip


def test_a_host_that_waits_for_what_stands_ends_the_log_there() -> None:
    report = log(awaits("f", "e"), record("f", "g"), Event("host_sync", HOST, event="g"), record("p", "e"))
    (finding,) = report.findings
    assert finding.what == "nothing can go on: f waits for record 1 of event 'e'; host waits for event 'g'"


def test_an_await_that_nothing_ends_is_found_too() -> None:
    assert log(awaits("f", "e"), touch("read", "f")).kinds() == {"wait-cycle"}


def test_a_block_that_is_handed_out_again_while_it_is_read_races() -> None:
    reads = (touch("alloc", "s", "block"), Event("wait_lane", "f", other="s"), touch("read", "f", "block"))
    again = (touch("free", HOST, "block"), touch("alloc", "s", "block"), touch("write", "s", "block"))
    (finding,) = log(*reads, *again).findings
    assert finding.kind == "race"
    assert "write of block[0:4]" in finding.what, "handing it out touches nothing; who writes it races"
    kept = Event("host_sync", HOST, other="f")
    assert log(*reads, kept, *again).findings == ()
