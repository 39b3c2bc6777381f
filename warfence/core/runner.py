"""One `execute` for every mode: load the batch, publish, replay, publish, tail. Modes are data here, not copies."""

from __future__ import annotations

from collections import Counter
from types import TracebackType

from warfence.core.backend import Lane, Outputs
from warfence.core.batch import Batch
from warfence.core.errors import FenceError
from warfence.core.fence import Mailbox
from warfence.core.forwards import PlannedForward
from warfence.core.modes import WarReadDonePolicy


class ReplaySession:
    """The time from loading a batch to the end of issuing its launch. One launch at a time is inside.

    A failure inside closes it cleanly: the mailbox is emptied, so that the next barrier is coarse (law 11), and the next
    launch may begin.
    """

    __slots__ = ("_mailbox", "_open", "failures")

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._open: int | None = None
        self.failures = 0

    def of(self, launch: int) -> ReplaySession:
        """Open it for one launch. FenceError while another launch is inside."""
        if self._open is not None:
            raise FenceError(
                f"launch {launch} begins inside the replay session of launch {self._open} on runner "
                f"'{self._mailbox.owner}'; issue one launch to its end before the next begins"
            )
        self._open = launch
        return self

    def __enter__(self) -> None:
        """Nothing: `of` opened it."""

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._open = None
        if kind is not None:
            self._mailbox.clear()
            self.failures += 1


class Runner:
    """Issues launches on the forward lane and leaves each launch's read-done ticket in its mailbox."""

    def __init__(self, name: str, forward_lane: Lane, schedule_lane: Lane) -> None:
        self.mailbox = Mailbox(name)
        self.session = ReplaySession(self.mailbox)
        self.policies: Counter[str] = Counter()
        self._forward_lane = forward_lane
        self._schedule_lane = schedule_lane

    def execute(self, planned: PlannedForward, batch: Batch, launch: int) -> Outputs:
        """Issue one launch; returns at once. Afterwards the mailbox holds the ticket of `launch`, or nothing.

        A failure on the way leaves no ticket, so that the next barrier is coarse (law 11).
        """
        forward = planned.forward
        with self.session.of(launch):
            self._forward_lane.wait_lane(self._schedule_lane)  # read after write: the plan's table writes come first
            forward.load_batch(batch, launch)
            policy = planned.policy_of(batch)
            if policy is WarReadDonePolicy.PRE_REPLAY:
                self.mailbox.publish(self._forward_lane.record(launch))
            forward.replay(launch)
            if policy is WarReadDonePolicy.IN_GRAPH:
                if forward.marker is None:
                    raise FenceError(
                        f"launch {launch}: policy IN_GRAPH for '{forward.program.name}', which has no marker"
                    )
                self.mailbox.publish(forward.marker.ticket(launch))
            elif policy is WarReadDonePolicy.POST_REPLAY:
                self.mailbox.publish(self._forward_lane.record(launch))
            outputs = forward.tail(launch)
        self.policies[policy.value] += 1
        return outputs
