"""Scenarios about where the fence stands, and between which lanes. `-fixed` is the twin of a bad one."""

from __future__ import annotations

from warfence.races.check.pairs.scenario import LATE, READ, THINK, Play, Scenario
from warfence.races.check.pairs.stand import MAP, Issued, Reads, Stand, T


def fenced(
    on: str, table: str = T, *, replay: tuple[Reads, ...] = (READ, THINK), load: Reads = (), marker: int | None = None
) -> Play:
    """One launch; the schedule lane waits for the ticket `on` of it, then writes. on: empty waits for nothing."""

    def play(s: Stand) -> None:
        issued = s.launch(s.forward(*replay, load=load, marker=marker))
        if on:
            s.S.wait(getattr(issued, on))
        s.write(s.S, table)

    return play


def coarse(s: Stand) -> None:
    """One launch; the schedule lane waits for the whole forward lane."""
    s.F.wait_lane(s.S)
    s.launch(s.forward(READ, THINK))
    s.S.wait_lane(s.F)
    s.write(s.S)


def barrier(after_launch: bool) -> Play:
    """Two steps of the overlap loop: the result of the launch before is processed behind the barrier, or ahead of it."""

    def play(s: Stand) -> None:
        previous: Issued | None = None
        for _ in range(3):
            s.F.wait_lane(s.S)
            issued = s.launch(s.forward(READ, THINK, marker=0))
            assert issued.marker is not None
            if after_launch:
                s.S.wait(issued.marker)
            if previous is not None:
                previous.outputs.result()
                s.write(s.S)
            if not after_launch:
                s.S.wait(issued.marker)
            previous = issued

    return play


def ring(s: Stand) -> None:
    """The marker is a ring of one slot: each launch records it again, after the wait for the record before was called."""
    for _ in range(4):
        s.F.wait_lane(s.S)
        issued = s.launch(s.forward(READ, THINK, marker=0))
        assert issued.marker is not None
        s.S.wait(issued.marker)
        s.write(s.S)


def owner(draft: bool, host: bool = False) -> Play:
    """Two launches of one step that both read; the barrier takes the ticket of the one or the other, or the host does."""

    def play(s: Stand) -> None:
        verify, extend = s.launch(s.forward(READ)), s.launch(s.forward(READ))
        ticket = extend.after if draft else verify.after
        if host:
            ticket.source.synchronize()
        else:
            s.S.wait(ticket)
        s.write(s.S)

    return play


def plan_lane(inherits: bool, schedule_writes: bool = False) -> Play:
    """The schedule lane waits; the plan lane writes, behind the schedule lane or by itself."""

    def play(s: Stand) -> None:
        s.S.wait(s.launch(s.forward(READ)).after)
        if schedule_writes:
            s.write(s.S)
        if inherits:
            s.P.wait_lane(s.S)
        s.write(s.P)

    return play


def both_tables(marker: int) -> Play:
    """The step writes two tables, which the forward reads one after the other."""

    def play(s: Stand) -> None:
        issued = s.launch(s.forward(READ, LATE, THINK, marker=marker))
        assert issued.marker is not None
        s.S.wait(issued.marker)
        s.write(s.S, T)
        s.write(s.S, MAP)

    return play


def wrong_stream(right: bool) -> Play:
    """The work is on the forward lane, the event was recorded there or on the plan lane."""

    def play(s: Stand) -> None:
        issued = s.launch(s.forward(READ))
        s.S.wait(issued.after if right else s.P.record(issued.number))
        s.write(s.S)

    return play


def zombie(waits: bool) -> Play:
    """The request ends with the first launch; the second, its surplus step, still reads its row."""

    def play(s: Stand) -> None:
        last, surplus = s.launch(s.forward(READ)), s.launch(s.forward(READ))
        last.outputs.result()
        if waits:
            s.S.wait(surplus.after)
        s.write(s.S)

    return play


FENCES = (
    Scenario("coarse", "ok", coarse),
    Scenario("no-fence", "bad", fenced("")),
    Scenario("pre-snapshot", "ok", fenced("before", load=READ, replay=(THINK,))),
    Scenario("pre-reread", "bad", fenced("before", load=READ, replay=(READ,))),
    Scenario("in-graph", "ok", fenced("marker", marker=0)),
    Scenario("in-graph-late-read", "bad", fenced("marker", MAP, replay=(READ, LATE), marker=0)),
    Scenario("in-graph-late-read-fixed", "ok", fenced("marker", MAP, replay=(READ, LATE), marker=1)),
    Scenario("post", "ok", fenced("after", replay=(READ,))),
    Scenario("post-early", "over-fencing", fenced("after")),
    Scenario("marker-missing", "bad", fenced("before")),
    Scenario("marker-missing-fixed", "ok", fenced("after", replay=(READ,))),
    Scenario("wrapper", "bad", fenced("marker", replay=(READ, READ, THINK), marker=0)),
    Scenario("wrapper-fixed", "ok", fenced("marker", replay=(READ, READ, THINK), marker=1)),
    Scenario("barrier-at-loop-top", "bad", barrier(after_launch=False)),
    Scenario("barrier-after-launch", "ok", barrier(after_launch=True)),
    Scenario("ring-stream-wait", "ok", ring),
    Scenario("wrong-owner", "bad", owner(draft=False)),
    Scenario("wrong-owner-fixed", "ok", owner(draft=True)),
    Scenario("fence-before-last-reader", "bad", owner(draft=False, host=True)),
    Scenario("fence-before-last-reader-fixed", "ok", owner(draft=True, host=True)),
    Scenario("plan-lane", "bad", plan_lane(inherits=False)),
    Scenario("plan-lane-inherits", "ok", plan_lane(inherits=True)),
    Scenario("bypass", "bad", plan_lane(inherits=False, schedule_writes=True)),
    Scenario("bypass-fixed", "ok", plan_lane(inherits=True, schedule_writes=True)),
    Scenario("out-of-region", "bad", both_tables(marker=0)),
    Scenario("out-of-region-fixed", "ok", both_tables(marker=1)),
    Scenario("wrong-stream", "bad", wrong_stream(right=False)),
    Scenario("wrong-stream-fixed", "ok", wrong_stream(right=True)),
    Scenario("zombie-row", "bad", zombie(waits=False)),
    Scenario("zombie-row-fixed", "ok", zombie(waits=True)),
)
