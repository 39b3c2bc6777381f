"""What the interface does not promise, the strict backend refuses, each with a sentence that says what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warfence.core.batch import Batch, BatchLayout, pack
from warfence.core.errors import FenceError, InputError
from warfence.core.fence import Ticket
from warfence.host.lanes import HostEvent, WorkerLane
from warfence.parity.strict.lanes import StrictEvent

Make = Callable[..., Any]


# -- the order of a launch


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ("r1", "replay of launch 1, but no launch is being issued; a forward issues one launch at a time"),
        ("l1 t1", r"tail of launch 1 out of order; its next region is replay \(load_batch, replay, tail\)"),
        ("l1 r1 r1", "replay of launch 1 out of order; its next region is tail"),
        ("l1 r1 t1 t1", "tail of launch 1, but no launch is being issued"),
        ("l1 r2", "replay of launch 2, but launch 1 is being issued"),
        ("l1 l2 r1", "replay of launch 1, but launch 2 is being issued"),
        ("l1 r1 l2 r2 t1", "tail of launch 1, but launch 2 is being issued"),
        ("l1 l1", "launch 1 after launch 1; launch numbers ascend and are never used again"),
        ("l2 r2 t2 l1", "'toy': launch 1 after launch 2; launch numbers ascend"),
    ],
)
def test_regions_are_issued_in_order_and_one_launch_at_a_time(toy: Any, calls: str, message: str) -> None:
    regions = {
        "l": lambda n: toy.forward.load_batch(toy.batch(), n), "r": toy.forward.replay, "t": toy.forward.tail,
    }  # fmt: skip
    *right, wrong = calls.split()
    for call in right:
        regions[call[0]](int(call[1]))
    with pytest.raises(FenceError, match=message):
        regions[wrong[0]](int(wrong[1]))


def test_launch_numbers_are_shared_by_all_forwards_of_a_backend(toy: Any) -> None:
    toy.launch(1)
    with pytest.raises(FenceError, match="launch 1 after launch 1"):
        toy.backend.compile(toy.program).load_batch(toy.batch(), 1)


def test_a_launch_that_failed_on_the_host_may_be_given_up(toy: Any) -> None:
    """Law 11: the next launch goes on, and gates that the lost one never got to can be closed."""
    toy.forward.load_batch(toy.batch(), 1)
    toy.forward.load_batch(toy.batch(), 2)
    toy.forward.replay(2)
    assert toy.forward.tail(2).result()["late"].tolist() == [0]
    toy.lane.synchronize()
    toy.forward.gates.close("think")


def test_a_batch_of_another_layout(toy: Any) -> None:
    with pytest.raises(InputError, match=r"launch 1: a batch of 2x1 .* for 'toy', which takes 1x1: pack it with"):
        toy.forward.load_batch(pack(BatchLayout(2, 1), []), 1)
    words = toy.batch().words.astype(np.int64)
    with pytest.raises(InputError, match=r"a batch of 1x1 \(int64\[9\]\)"):
        toy.forward.load_batch(Batch(toy.program.layout, words), 1)


@pytest.mark.parametrize("begun", [False, True])
def test_a_batch_that_is_changed_before_its_launch_is_over(toy: Any, begun: bool) -> None:
    """Law 12."""
    batch = Batch(toy.program.layout, toy.batch().words.copy())
    toy.forward.gates.close("think")
    toy.forward.load_batch(batch, 1)
    toy.forward.replay(1)
    outputs = toy.forward.tail(1)
    if begun:
        toy.forward.gates.await_reached("think")
    batch.view("prefix_lens")[0] = 5
    toy.forward.gates.open_all()
    with pytest.raises(
        FenceError, match=r"launch 1: the batch was changed after it was packed \(field 'prefix_lens'\)"
    ):
        outputs.result()


# -- tickets


def test_tickets_of_others(toy: Any, make_toy: Make) -> None:
    other = make_toy()
    event = HostEvent()
    event.arm(1)
    for ticket, kind in ((other.lane.record(1), "StrictEvent"), (Ticket(1, event), "HostEvent")):
        with pytest.raises(FenceError, match=f"ticket of launch 1, which is foreign: it was recorded on {kind}"):
            toy.schedule.wait(ticket)
    worker = WorkerLane("worker")
    for lane in (other.lane, worker):
        with pytest.raises(FenceError, match=f"was to wait for lane '{lane.name}' of another backend"):
            toy.schedule.wait_lane(lane)
    worker.close()
    toy.schedule.wait_lane(toy.schedule)
    assert toy.schedule.settle(0.0), "a lane is in order with itself"


def test_stale_and_never_recorded_tickets(toy: Any) -> None:
    toy.launch(1)
    ticket = toy.forward.marker.ticket(1)
    toy.launch(2)
    with pytest.raises(FenceError, match="ticket of launch 1 is stale: its source now holds the record of launch 2"):
        toy.schedule.wait(ticket)
    with pytest.raises(FenceError, match="ticket of launch 3 was never recorded"):
        toy.schedule.wait(Ticket(3, StrictEvent(toy.lane.machine, "ticket")))
    toy.forward.load_batch(toy.batch(), 3)
    with pytest.raises(FenceError, match="ticket of launch 3 asked for, last issued launch is 2"):
        toy.forward.marker.ticket(3)


# -- gates


def test_a_gate_is_closed_before_the_launch_or_behind_it(toy: Any) -> None:
    gates = toy.forward.gates
    gates.close("read")
    toy.forward.load_batch(toy.batch(), 1)
    for position in gates.positions:
        with pytest.raises(
            FenceError, match=f"gate at '{position}' was to be closed while launch 1 is between its issue"
        ):
            gates.close(position)
    toy.forward.replay(1)
    outputs = toy.forward.tail(1)
    gates.await_reached("read")
    gates.close("take")  # it is past this one
    with pytest.raises(FenceError, match="gate at 'think' was to be closed while launch 1"):
        gates.close("think")
    gates.open_all()
    outputs.result()


def test_a_gate_that_nobody_can_get_to(toy: Any) -> None:
    gates = toy.forward.gates
    with pytest.raises(FenceError, match="nobody ever stands at the gate at 'read', which is open"):
        gates.await_reached("read")
    gates.close("read")
    gates.close("think")
    with pytest.raises(FenceError, match=r"'toy': await_reached\('think'\) would block for ever: .*'forward' is idle"):
        gates.await_reached("think")
    toy.launch(1)
    with pytest.raises(
        FenceError, match=r"lane 'forward' stands at the closed gate at 'read' of 'toy'\. Open the gate"
    ):
        gates.await_reached("think")


def test_gates_of_two_forwards_of_one_program_are_not_taken_for_each_other(toy: Any) -> None:
    twin = toy.backend.compile(toy.program, gated=True)
    toy.forward.gates.close("take")
    twin.gates.close("take")
    toy.launch(1)
    toy.forward.gates.await_reached("take")
    with pytest.raises(FenceError, match="would block for ever"):
        twin.gates.await_reached("take")


# -- after close


def test_nothing_can_be_used_after_close(toy: Any) -> None:
    done, pending = toy.launch(1), toy.launch(2)
    seen = done.result()
    ticket = toy.forward.marker.ticket(2)
    toy.backend.close()
    toy.backend.close()
    for call in (
        lambda: toy.backend.lane("schedule"),
        lambda: toy.backend.tables({}),
        lambda: toy.backend.load({}, {}),
        lambda: toy.backend.compile(toy.program),
        lambda: toy.backend.state_to_host("s"),
        lambda: toy.write(1),
        lambda: toy.tables.snapshot_to_host("t"),
        lambda: toy.schedule.wait(ticket),
        lambda: toy.schedule.wait_lane(toy.lane),
        lambda: toy.schedule.record(3),
        lambda: toy.schedule.settle(0.0),
        toy.schedule.synchronize,
        ticket.source.synchronize,
        lambda: toy.forward.load_batch(toy.batch(), 3),
        lambda: toy.forward.replay(2),
        lambda: toy.forward.tail(2),
        pending.result,
        lambda: toy.forward.gates.close("start"),
        lambda: toy.forward.gates.await_reached("start"),
    ):
        with pytest.raises(FenceError, match=r"backend strict was closed: make a new one"):
            call()
    assert done.result() is seen, "what is here stays here"
    assert len(toy.happened()) == toy.backend.report()["virtual_time"]
