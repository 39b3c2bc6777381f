"""What a finding says: both accesses, the missing edge, and where it would be right."""

from __future__ import annotations

from tests.races.check.programs import Program, R, W
from warfence.races.check.events import HOST, Event
from warfence.races.check.findings import LIMITS, Finding, check
from warfence.races.check.log_file import Log


def only(program: Program, kind: str) -> Finding:
    (finding,) = (one for one in check(program.log).findings if one.kind == kind)
    return finding


def test_a_race_names_both_accesses_the_missing_edge_and_the_earliest_right_place() -> None:
    program = (
        Program()
        .run("F", R("m"), launch=3, stage="load")
        .record("F", "e")
        .run("F", R("t", 0, 8), launch=3, stage="late")
    )
    race = only(program.wait("S", "e").run("S", W("t", 4, 12), launch=4, stage="admit"), "race")
    assert race.what == (
        "read of t[0:8] by 'late' of launch 3 on lane forward and write of t[4:12] by 'admit' of launch 4 on lane schedule "
        "may happen in either order"
    )
    assert "lane schedule does not wait for lane forward behind 'late' of launch 3" in race.missing
    assert "it is behind an operation 1 earlier only" in race.missing
    assert race.earliest.startswith("right after 'late' of launch 3 on lane forward: record there")
    assert race.lines == (3, 5)


def test_a_race_with_the_host_asks_for_a_synchronisation() -> None:
    race = only(Program().run("F", R("pin")).run("H", W("pin")), "race")
    assert "the host does not synchronise with lane forward" in race.missing


def test_of_several_reads_the_last_is_named_since_a_fence_behind_it_covers_the_others() -> None:
    program = Program().run("F", R("t"), stage="first").run("F", R("t"), stage="last").run("S", W("t"))
    assert "'last'" in only(program, "race").what


def test_races_that_are_alike_are_counted_together() -> None:
    program = Program()
    for row in range(5):
        program.run("F", R("t", row), stage="snapshot").run("S", W("t", row), stage="admit")
    assert only(program, "race").count == 5


def test_a_wait_for_what_nothing_recorded_is_found() -> None:
    finding = only(Program().wait("S", "e").record("F", "e"), "never-recorded")
    assert "event 'e', which nothing had recorded at the call" in finding.what


def test_a_wait_for_a_launch_whose_record_was_overwritten_is_stale() -> None:
    program = Program().record("F", "e", launch=1).record("F", "e", launch=2).wait("S", "e", launch=1)
    finding = only(program, "stale-ticket")
    assert "for launch 1, but the event holds the record of launch 2, generation 2 on lane forward" in finding.what
    assert finding.lines == (3, 2)


def test_a_ticket_of_another_generation_is_stale() -> None:
    events = [Event("record", "forward", event="e", generation=2), Event("wait", "plan", event="e", generation=1)]
    assert check(Log(events)).kinds() == {"stale-ticket"}


def test_over_fencing_names_how_many_operations_later_than_needed() -> None:
    program = Program().run("F", R("t")).run("F", R("m")).run("F", R("n")).wait_lane("S", "F").run("S", W("t"))
    finding = only(program, "over-fencing")
    assert "2 operations more than needed" in finding.what
    assert "right after its operation 1" in finding.earliest


def test_a_wait_that_one_instance_needed_in_full_is_not_over_fencing() -> None:
    program = Program()
    for row in (0, 1, 0):
        program.run("F", R("t", row)).wait_lane("S", "F").run("S", W("t", 0)).wait_lane("F", "S")
    assert "over-fencing" not in check(program.log).kinds()


def test_an_edge_that_another_lane_needs_through_this_one_is_not_over_fencing() -> None:
    program = Program().run("F", R("t")).wait_lane("S", "F").run("S", R("x")).wait_lane("P", "S").run("P", W("t"))
    assert "1 operation more" in only(program, "over-fencing").what  # the read of x, not that of t


def test_a_host_synchronisation_orders_what_is_enqueued_later_on_every_lane() -> None:
    events = [
        Event("read", "forward", resource="t", end=4),
        Event("host_sync", HOST, other="forward"),
        Event("write", "plan", resource="t", end=4),
        Event("write", HOST, resource="u", end=4),
        Event("read", "copy", resource="u", end=4),
    ]
    assert not check(Log(events)).findings


def test_every_report_says_what_could_not_be_seen() -> None:
    assert check(Log([], unseen=("custom kernels",))).limits == ("custom kernels", *LIMITS)
