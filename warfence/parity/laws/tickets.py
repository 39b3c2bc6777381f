"""Laws about tickets, mailbox and barrier: 4, 5, 6, 7, 11."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from warfence.core.errors import FenceError
from warfence.core.fence import Mailbox, Ticket, WarBarrier
from warfence.core.forwards import PlannedForward
from warfence.core.modes import FenceMode, ForwardMode, WarReadDonePolicy
from warfence.core.policy import Decision
from warfence.core.program import REQ_TO_TOKEN
from warfence.core.runner import Runner
from warfence.core.scheduler import Scheduler
from warfence.parity.laws.base import Bench, decode_cell, host_order, require
from warfence.parity.rig import CONTEXT, SPARE_ROW, batch_of
from warfence.parity.small import serve
from warfence.serve.engine import Engine

EARLY_S = 0.1  # how long a write may take to land where only the runtime knows what holds it


def _refused(call: Callable[[], object], what: str) -> None:
    try:
        call()
    except FenceError:
        return
    require(False, f"{what} was accepted; it must be refused with a FenceError")


def a_ticket_belongs_to_one_launch(bench: Bench) -> None:
    """Law 4. Stale, foreign and never-recorded tickets are refused by the lane, the mailbox and the barrier.

    By event the ticket of a marker that was armed anew is stale. By value it is not: it stays that of its launch.
    """
    rig, schedule, lane = bench.rig, bench.schedule, bench.forward
    fresh = lane.record(rig.next_launch())
    schedule.wait(fresh)
    _refused(lambda: schedule.wait(Ticket(fresh.launch + 1, fresh.source)), "a ticket on another launch's record")
    box = Mailbox("law")
    box.publish(lane.record(rig.next_launch()))
    _refused(
        lambda: WarBarrier().apply(rig.next_launch(), box, schedule, lane), "another launch's ticket at the barrier"
    )
    if rig.backend.capabilities.external_markers:
        _kept_ticket(bench)
        _barriers_in_a_row(bench)
    schedule.synchronize()


def _kept_ticket(bench: Bench) -> None:
    """A ticket that is kept until the forward was launched again."""
    rig, schedule = bench.rig, bench.schedule
    planned, _ = rig.planned(decode_cell("captured"))
    tickets = []
    for _ in range(2):
        rig.fixture.execute(planned, batch_of(decode_cell("captured"))).result()
        tickets.append(rig.fixture.runner.mailbox.take())
    kept = tickets[0]
    require(kept is not None, f"'{planned.forward.program.name}' published no in-graph ticket")
    if kept is not None and rig.backend.capabilities.value_tickets:
        require(kept.source.done(), "a ticket by value is not done after its launch: a later launch changed it")
        schedule.wait(kept)
    elif kept is not None:
        _refused(lambda: schedule.wait(kept), "the ticket of a marker that was armed anew since")


def _barriers_in_a_row(bench: Bench) -> None:
    """Each launch is followed by its barrier, as in the loop."""
    planned, _ = bench.rig.planned(decode_cell("captured"))
    runner, barrier = Runner("law", bench.forward, bench.schedule), WarBarrier()
    for _ in range(3):
        number = bench.rig.next_launch()
        outputs = runner.execute(planned, batch_of(decode_cell("captured")), number)
        barrier.apply(number, runner.mailbox, bench.schedule, bench.forward)
        outputs.result()
    require(barrier.counts.coarse == 0, "a marked forward was launched and its barrier found no ticket")


def in_graph_tickets_come_after_their_launch(bench: Bench) -> None:
    """Law 5. Asked before its replay was issued, a marker gives no ticket; afterwards the ticket is of this launch.

    By value nothing binds to an older record: the ticket is there before its launch, and a wait on it holds until then.
    """
    rig = bench.rig
    planned, _ = rig.planned(decode_cell("captured"))
    forward, batch = planned.forward, batch_of(decode_cell("captured"))
    marker, gates = forward.marker, forward.gates
    assert marker is not None
    assert gates is not None
    for _ in range(2):  # the second time there is an older record that a wait could wrongly bind to
        number = rig.next_launch()
        bench.forward.wait_lane(bench.schedule)
        gates.close("start")
        try:
            forward.load_batch(batch, number)
            early = _ticket_or_none(lambda n=number: marker.ticket(n))  # type: ignore[misc]
            landed = early is not None and _landed_behind(bench, early)
            forward.replay(number)
            outputs = forward.tail(number)
            done = marker.ticket(number).source.done()
            landed |= early is not None and bench.schedule.settle(EARLY_S)
        finally:
            gates.open_all()
        outputs.result()
        bench.forward.synchronize()
        bench.schedule.synchronize()
        by_value = rig.backend.capabilities.value_tickets
        require(by_value or early is None, f"launch {number}: the marker gave a ticket before its replay was issued")
        require(not by_value or early is not None, f"launch {number}: no ticket by value before the replay was issued")
        require(not landed, f"launch {number} is held at its start, and a write behind its early ticket landed")
        require(not done, f"launch {number} is held at its start and its in-graph ticket is done: an older record's")
    _published_as_its_own(bench)


def _published_as_its_own(bench: Bench) -> None:
    """What the runner publishes opens the barrier behind the boundary of this launch, whenever the runner asked for it."""
    rig = bench.rig
    planned, marker = rig.planned(decode_cell("captured"))
    assert marker is not None
    before = planned.forward.program.before(marker)
    for _ in range(2):
        with rig.fixture.held(planned, batch_of(decode_cell("captured")), before) as outputs:
            rig.fixture.barrier(outputs.launch)
            _write(bench)
            landed = bench.schedule.settle(EARLY_S)
        outputs.result()
        rig.fixture.settle()
        require(
            not landed, f"launch {outputs.launch} is held before its boundary, and a write behind its barrier landed"
        )


def _landed_behind(bench: Bench, ticket: Ticket) -> bool:
    bench.schedule.wait(ticket)
    _write(bench)
    return bench.schedule.settle(EARLY_S)


def _write(bench: Bench) -> None:
    """One write into a cell that no row uses."""
    bench.rig.fixture.write(REQ_TO_TOKEN, [SPARE_ROW * CONTEXT], [0])


def _ticket_or_none(ask: Callable[[], Ticket]) -> Ticket | None:
    try:
        return ask()
    except FenceError:
        return None


def the_barrier_stands_right_after_each_launch(bench: Bench) -> None:
    """Law 6. After a replay the schedule lane waits before anything is written or a result is taken; the plan lane inherits."""
    engine = bench.engine
    schedule = engine.backend.lane("schedule")
    things: list[tuple[object, str, str]] = [
        (engine.tables, "write", "write"),
        (schedule, "wait", "wait"),
        (schedule, "wait_lane", "wait"),
        (Scheduler, "_process", "result"),
        *((p.forward, "replay", "replay") for p in engine.forwards.all()),
    ]
    with host_order(engine.backend, *things) as notes:
        serve(engine, fence=FenceMode.FINE)
    after = {notes[i + 1] for i, note in enumerate(notes[:-1]) if note == "replay"}
    require(
        after == {"wait"}, f"right after a launch the host must wait on the schedule lane; seen next: {sorted(after)}"
    )

    _last_phase_then_barrier(bench.spec_engine)

    rig = bench.rig
    planned, _ = rig.planned(decode_cell("captured"))
    with rig.fixture.held(planned, batch_of(decode_cell("captured")), "start") as outputs:
        rig.fixture.barrier(outputs.launch)
        bench.plan.wait_lane(bench.schedule)
        rig.fixture.write(REQ_TO_TOKEN, [SPARE_ROW * CONTEXT], [0], bench.plan)
        landed = bench.plan.settle(0.1)
    outputs.result()
    for lane in (bench.forward, bench.schedule, bench.plan):
        lane.synchronize()
    require(not landed, "a plan lane that waits for the schedule lane wrote before the schedule lane's barrier opened")


def _last_phase_then_barrier(engine: Engine) -> None:
    """Where a step has two launches the barrier follows the last; slots for a block are written behind the schedule lane."""
    schedule, plan = engine.backend.lane("schedule"), engine.backend.lane("plan")
    draft = {p.forward for p in engine.forwards.all() if p.forward.program.mode is ForwardMode.DRAFT_EXTEND}
    things: list[tuple[object, str, str]] = [
        (engine.tables, "write", "write"),
        (schedule, "wait", "wait"),
        (schedule, "wait_lane", "wait"),
        (plan, "wait_lane", "plan waits"),
        *((p.forward, "replay", "draft" if p.forward in draft else "target") for p in engine.forwards.all()),
    ]
    with host_order(engine.backend, *things) as notes:
        _, summary = serve(engine, fence=FenceMode.FINE)
    require(summary.steps_by_mode.get("target_verify", 0) > 0, f"nothing was verified: {dict(summary.steps_by_mode)}")
    pairs = list(itertools.pairwise(notes))
    after = {b for a, b in pairs if a == "draft"}
    require(
        after == {"wait"}, f"after the last phase of a step the schedule lane must wait; seen next: {sorted(after)}"
    )
    unordered = {b for a, b in pairs if a == "plan waits"} - {"write"}
    require(
        not unordered and "plan waits" in notes, f"the plan lane waits, then writes; seen next: {sorted(unordered)}"
    )


def every_barrier_empties_the_mailbox(bench: Bench) -> None:
    """Law 7. Whatever the fence, the slot is empty afterwards, and a leftover of another runner is not used."""
    rig, schedule, lane = bench.rig, bench.schedule, bench.forward
    for mode in FenceMode:
        box, other, number = Mailbox("target"), Mailbox("draft"), rig.next_launch()
        other.publish(lane.record(rig.next_launch()))
        box.publish(lane.record(number))
        WarBarrier(mode).apply(number, box, schedule, lane)
        require(box.take() is None, f"{mode.value} fence: the mailbox still holds a ticket after the barrier")
        require(other.take() is not None, f"{mode.value} fence: the barrier took another runner's ticket")
    box = Mailbox("target")
    box.publish(lane.record(rig.next_launch()))
    _refused(lambda: box.publish(lane.record(rig.next_launch())), "a second publisher before the barrier")
    schedule.synchronize()
    _, summary = serve(bench.spec_engine, fence=FenceMode.FINE)
    by_mode, drafted = summary.steps_by_mode, bench.spec_engine.spec.draft_extend_after
    owned = sum(n for mode, n in by_mode.items() if ForwardMode(mode) in drafted)
    require(
        summary.barriers["fine"] >= owned,
        f"{owned} steps ended in a draft extend, whose runner owns the mailbox, and only {summary.barriers['fine']} barriers "
        f"took a ticket ({dict(by_mode)})",
    )


class _FailingForward:
    """A forward whose replay raises. Nothing is enqueued, so the lanes stay usable."""

    def __init__(self, planned: PlannedForward) -> None:
        self.program, self.marker, self.gates = planned.forward.program, planned.forward.marker, None

    def load_batch(self, batch: object, launch: int) -> None:
        """Nothing."""

    def replay(self, launch: int) -> None:
        raise RuntimeError(f"replay of launch {launch}")

    def tail(self, launch: int) -> object:
        raise RuntimeError("a tail after a failed replay")


def a_failure_leaves_no_ticket(bench: Bench) -> None:
    """Law 11. A launch that fails between load_batch and the end of the replay leaves the mailbox empty."""
    planned, _ = bench.rig.planned(decode_cell("captured"))
    for policy in WarReadDonePolicy:
        runner = Runner("law", bench.forward, bench.schedule)
        failing = PlannedForward(_FailingForward(planned), Decision(policy, "law", ""))  # type: ignore[arg-type]
        try:
            runner.execute(failing, batch_of(decode_cell("captured")), bench.rig.next_launch())
        except RuntimeError:
            pass
        else:
            require(False, f"policy {policy.value}: a failing replay raised nothing")
        require(runner.mailbox.take() is None, f"policy {policy.value}: a failed launch left a ticket behind")
