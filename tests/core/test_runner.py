"""One execute(): the order of load, publish, replay, publish, tail, for every policy (laws 5, 8, 11).

And the replay session around it, which a failure closes, and which admits one launch at a time.
"""

from __future__ import annotations

from typing import Any

import pytest

from warfence.core.backend import Marker
from warfence.core.errors import FenceError
from warfence.core.fence import Ticket
from warfence.core.forwards import PlannedForward
from warfence.core.modes import WarReadDonePolicy
from warfence.core.policy import Decision
from warfence.core.runner import Runner

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
    """Planted is a property of one captured forward: the runner cannot lend another shape's marker."""
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


# -- the replay session


@pytest.mark.parametrize("where", ["load_batch", "replay", "tail"])
def test_a_failure_closes_the_session_and_the_next_launch_works(where: str) -> None:
    log = Log(marker=True, fail_in=where)
    runner, planned = Runner("target", log, log), PlannedForward(log, Decision(P.IN_GRAPH, "", ""))
    for failures in (1, 2):
        with pytest.raises(RuntimeError, match=where):
            runner.execute(planned, None, failures)
        assert runner.session.failures == failures
        assert runner.mailbox.take() is None
    log.fail_in = None
    assert runner.execute(planned, None, 3) == "outputs of 3"
    assert runner.mailbox.take().launch == 3
    assert (runner.session.failures, runner.policies) == (2, {"in_graph": 1})


@pytest.mark.parametrize("policy", [P.PRE_REPLAY, P.IN_GRAPH, P.POST_REPLAY])
def test_a_failed_publication_leaves_no_ticket_either(policy: P) -> None:
    """The barrier did not empty the mailbox: two tickets are an error, and the older one goes too."""
    log = Log(marker=True)
    runner, planned = Runner("target", log, log), PlannedForward(log, Decision(policy, "", ""))
    runner.execute(planned, None, 1)
    with pytest.raises(FenceError, match="still holds the ticket of launch 1 while launch 2 publishes"):
        runner.execute(planned, None, 2)
    assert runner.mailbox.take() is None
    assert runner.session.failures == 1
    runner.execute(planned, None, 3)
    assert runner.mailbox.take().launch == 3


@pytest.mark.parametrize("where", ["load_batch", "replay", "tail"])
def test_a_launch_inside_the_session_of_another_is_refused_and_so_is_the_outer_one(where: str) -> None:
    log = Log()
    runner, planned = Runner("draft", log, log), PlannedForward(log, Decision(P.POST_REPLAY, "", ""))
    plain = log._do

    def nested(what: str) -> None:
        plain(what)
        if what == where and log.count("wait schedule") == 1:
            runner.execute(planned, None, 8)

    log._do = nested
    message = "launch 8 begins inside the replay session of launch 7 on runner 'draft'; issue one launch to its end"
    with pytest.raises(FenceError, match=message):
        runner.execute(planned, None, 7)
    assert log.count("wait schedule") == 1, "nothing of the inner launch was issued"
    assert runner.mailbox.take() is None
    assert (runner.session.failures, sum(runner.policies.values())) == (1, 0)
    assert runner.execute(planned, None, 9) == "outputs of 9"


def test_runners_have_sessions_of_their_own() -> None:
    """The draft's launch may begin while nothing of the target's is held open, and the other way round."""
    log = Log()
    target, draft = (Runner(name, log, log) for name in ("target", "draft"))
    with target.session.of(1):
        assert draft.execute(PlannedForward(log, Decision(P.NONE, "", "")), None, 2) == "outputs of 2"
