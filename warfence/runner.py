"""One `execute` for every mode: load the batch, publish, replay, publish, tail. Modes are data here, not copies."""

from __future__ import annotations

from collections import Counter

from warfence.backend import Lane, Outputs
from warfence.batch import Batch
from warfence.errors import FenceError
from warfence.fence import Mailbox
from warfence.forwards import PlannedForward
from warfence.modes import WarReadDonePolicy


class Runner:
    """Issues launches on the forward lane and leaves each launch's read-done ticket in its mailbox."""

    def __init__(self, name: str, forward_lane: Lane, schedule_lane: Lane) -> None:
        self.mailbox = Mailbox(name)
        self.policies: Counter[str] = Counter()
        self._forward_lane = forward_lane
        self._schedule_lane = schedule_lane

    def execute(self, planned: PlannedForward, batch: Batch, launch: int) -> Outputs:
        """Issue one launch; returns at once. Afterwards the mailbox holds the ticket of `launch`, or nothing.

        A failure on the way leaves no ticket, so that the next barrier is coarse (law 11).
        """
        forward, policy = planned.forward, planned.decision.policy
        try:
            self._forward_lane.wait_lane(self._schedule_lane)  # read after write: the plan's table writes come first
            forward.load_batch(batch, launch)
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
        except BaseException:
            self.mailbox.clear()
            raise
        self.policies[policy.value] += 1
        return outputs
