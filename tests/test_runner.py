"""One execute(): the order of load, publish, replay, publish, tail, for every policy (cases 2, 3, 4, 5, 17; laws 5, 8, 11)."""

from __future__ import annotations

from typing import Any

import pytest

from warfence.backend import Marker
from warfence.errors import FenceError
from warfence.fence import Ticket
from warfence.forwards import PlannedForward
from warfence.modes import WarReadDonePolicy
from warfence.policy import Decision
from warfence.runner import Runner

P = WarReadDonePolicy


class Source:
    def __init__(self, name: str) -> None:
        self.name, self.launch = name, None

    def recorded_for(self) -> int | None:
        return self.launch


class Log(list[str]):
    """The forward lane, the schedule lane and a forward in one, writing down what happens."""

    name = "forward"
    program: Any = type("P", (), {"name": "p"})

    def __init__(self, marker: bool = False, fail_in: str | None = None) -> None:
        super().__init__()
        self.marker = Marker("page_table") if marker else None
        self.persistent = Source("node")
        self.fail_in = fail_in

    def wait_lane(self, other: object) -> None:
        self.append("wait schedule")

    def record(self, launch: int) -> Ticket:
        self.append("record")
        source = Source("fresh")
        source.launch = launch
        return Ticket(launch, source)

    def _do(self, what: str) -> None:
        if what == self.fail_in:
            raise RuntimeError(what)
        self.append(what)

    def load_batch(self, batch: object, launch: int) -> None:
        self._do("load_batch")

    def replay(self, launch: int) -> None:
        self._do("replay")
        self.persistent.launch = launch
        if self.marker is not None:
            self.marker.issued(launch, self.persistent)

    def tail(self, launch: int) -> str:
        self._do("tail")
        return f"outputs of {launch}"


def execute(log: Log, policy: P, launch: int = 1) -> tuple[Runner, Any]:
    runner = Runner("target", log, log)
    return runner, runner.execute(PlannedForward(log, Decision(policy, "", "")), None, launch)


def test_pre_replay_records_before_the_replay() -> None:
    log = Log()
    runner, outputs = execute(log, P.PRE_REPLAY)
    assert log == ["wait schedule", "load_batch", "record", "replay", "tail"]
    assert runner.mailbox.take().source.name == "fresh"
    assert outputs == "outputs of 1"


def test_in_graph_hands_over_the_node_after_the_launch_and_records_nothing() -> None:
    log = Log(marker=True)
    runner, _ = execute(log, P.IN_GRAPH, launch=5)
    assert log == ["wait schedule", "load_batch", "replay", "tail"]
    ticket = runner.mailbox.take()
    assert ticket.source is log.persistent
    assert ticket.launch == 5


def test_post_replay_records_between_replay_and_tail() -> None:
    log = Log(marker=True)
    runner, _ = execute(log, P.POST_REPLAY)
    assert log == ["wait schedule", "load_batch", "replay", "record", "tail"]
    assert runner.mailbox.take().source.name == "fresh"


def test_none_publishes_nothing() -> None:
    log = Log(marker=True)
    runner, _ = execute(log, P.NONE)
    assert log == ["wait schedule", "load_batch", "replay", "tail"]
    assert runner.mailbox.take() is None


def test_in_graph_without_a_marker_is_an_error_and_no_ticket() -> None:
    """Planted is a property of one captured forward (case 17): the runner cannot lend another shape's marker."""
    runner = Runner("target", log := Log(), log)
    with pytest.raises(FenceError, match="policy IN_GRAPH for 'p', which has no marker"):
        runner.execute(PlannedForward(log, Decision(P.IN_GRAPH, "", "")), None, 1)
    assert runner.mailbox.take() is None


@pytest.mark.parametrize("policy", list(P))
@pytest.mark.parametrize("where", ["load_batch", "replay", "tail"])
def test_a_failure_leaves_no_ticket(policy: P, where: str) -> None:
    """Law 11: the next barrier is coarse."""
    log = Log(marker=True, fail_in=where)
    runner = Runner("target", log, log)
    with pytest.raises(RuntimeError, match=where):
        runner.execute(PlannedForward(log, Decision(policy, "", "")), None, 1)
    assert runner.mailbox.take() is None
    assert sum(runner.policies.values()) == 0
