"""Where the marker stands, by holding: the scheduler's write lands behind the last read, and no earlier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from warfence.core.gates import HostGates
from warfence.host.lanes import WorkerLane
from warfence.parity.boundary import Boundary
from warfence_torch import plant
from warfence_torch.tools.planting.host import HostPlanted

GATES = ("first read", "before the last read", "behind the last read")
OLD, NEW = 1.0, 100.0
RIGHT = [[OLD + OLD * 2] * 4]  # table[idx] + view * 2


@dataclass
class Rig:
    """A forward with a gate on either side of its last read, and a scheduler that writes the table behind a ticket."""

    table: Tensor
    gates: HostGates
    planted: HostPlanted
    forward: WorkerLane
    schedule: WorkerLane

    def launch(self, held_at: str, launch: int) -> bool:
        """Issue, hold, and try to write. Whether the write landed while the forward was held."""
        self.table.fill_(OLD)
        self.gates.close(held_at)
        self.planted.replay(self.forward, launch)
        self.schedule.wait(self.planted.ticket(launch))
        self.schedule.submit(lambda: self.table.fill_(NEW))
        self.gates.await_reached(held_at)
        landed = self.schedule.settle(0)
        assert (self.table == NEW).all() if landed else (self.table == OLD).all()
        self.gates.open(held_at)
        self.forward.synchronize()
        self.schedule.synchronize()
        assert not self.gates.watchdog_fired
        return landed


@pytest.fixture
def rig() -> Iterator[Rig]:
    table, idx, gates = torch.full((2, 4), OLD), torch.tensor([1]), HostGates(GATES)
    view = table.view(-1)[4:].view(1, 4)

    def fn() -> Tensor:
        rows = table[idx]
        gates.pass_through("first read")
        scale = torch.full((1,), 2.0)
        gates.pass_through("before the last read")
        scaled = view * scale
        gates.pass_through("behind the last read")
        return rows + scaled

    forward, schedule = WorkerLane("forward"), WorkerLane("schedule")
    yield Rig(table, gates, plant(fn, {"table": table}), forward, schedule)
    gates.open_all()
    forward.close()
    schedule.close()


def test_the_write_lands_exactly_when_the_last_read_is_over(rig: Rig) -> None:
    landed = [rig.launch(gate, launch) for launch, gate in enumerate(GATES, start=1)]
    assert landed == [False, False, True]
    assert rig.planted.output.tolist() == RIGHT


def test_each_launch_reads_what_stood_there_before_the_write(rig: Rig) -> None:
    for launch, gate in enumerate(GATES, start=1):
        rig.launch(gate, launch)
        assert rig.planted.output.tolist() == RIGHT


def test_a_marker_one_operation_early_lets_the_write_in_front_of_the_read(rig: Rig) -> None:
    """The negative arm: without it, the test above could pass with a fence that never opens early by luck."""
    p = rig.planted
    early = p._trace[p.boundary.after.position - 1].operation
    wrong = Boundary(early, p.boundary.reads, p.boundary.unseen, p.boundary.operations)
    rig.planted = HostPlanted(p._subject, wrong, p._trace, p.output, [])
    assert [rig.launch(gate, launch) for launch, gate in enumerate(GATES[:2], start=1)] == [False, True]
    assert rig.planted.output.tolist() == [[OLD + NEW * 2] * 4]


def test_a_function_that_reads_nothing_shared_holds_nobody(rig: Rig) -> None:
    x = torch.ones(1)

    def fn() -> Tensor:
        y = x + 1
        rig.gates.pass_through("first read")
        return y

    rig.planted = plant(fn, [rig.table])
    assert rig.launch("first read", 1)
