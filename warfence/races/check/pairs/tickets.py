"""Scenarios about tickets that are not what they seem, and about the host: its waits, and memory that it fills."""

from __future__ import annotations

from contextlib import suppress

from warfence.core.batch import Batch, BatchRow, pack
from warfence.core.errors import FenceError
from warfence.core.fence import Ticket
from warfence.races.check.pairs.scenario import READ, THINK, Play, Scenario
from warfence.races.check.pairs.stand import LAYOUT, Stand


def host_waits(s: Stand) -> None:
    """The host blocks for the launch."""
    s.launch(s.forward(READ)).after.source.synchronize()
    s.write(s.S)


def host_asks(s: Stand) -> None:
    """The host asks until the answer is yes."""
    source = s.launch(s.forward(READ)).after.source
    while not source.done():
        pass
    s.write(s.S)


def stale(s: Stand) -> None:
    """The ticket of a launch whose marker another launch has recorded again; then the right one."""
    forward = s.forward(READ, THINK, marker=0)
    first, second = s.launch(forward), s.launch(forward)
    assert first.marker is not None
    assert second.marker is not None
    with suppress(FenceError):
        s.S.wait(first.marker)
    s.S.wait(second.marker)
    s.write(s.S)


class _Never:
    """A ticket source on which nothing was ever recorded."""

    def recorded_for(self) -> int | None:
        return None

    def done(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass


def never(s: Stand) -> None:
    """A ticket on whose source nothing was recorded; nothing is written."""
    issued = s.launch(s.forward(READ))
    with suppress(FenceError):
        s.S.wait(Ticket(issued.number, _Never()))


def failed_snapshot(cleared: bool) -> Play:
    """The second launch leaves no ticket; the barrier takes the first one's, or, rightly, waits for the lane."""

    def play(s: Stand) -> None:
        first, _ = s.launch(s.forward(READ)), s.launch(s.forward(READ))
        if cleared:
            s.S.wait_lane(s.F)
        else:
            s.S.wait(first.after)
        s.write(s.S)

    return play


def staging(synchronized: bool) -> Play:
    """One buffer for the batches of two launches, filled again for the second."""

    def play(s: Stand) -> None:
        packed = pack(LAYOUT, [BatchRow(1, 0, (0,), (0,), False, 0.0, 1.0, ())])
        batch = Batch(LAYOUT, packed.words.copy())
        first = s.launch(s.forward(THINK), batch)
        if synchronized:
            first.outputs.result()
        batch.words[0] += 1
        s.launch(s.forward(THINK), batch)

    return play


TICKETS = (
    Scenario("host-sync", "ok", host_waits),
    Scenario("host-query", "ok", host_asks, ("strict", "its virtual time stands while the host only asks")),
    Scenario("stale-ticket", "stale-ticket", stale),
    Scenario("never-recorded", "never-recorded", never),
    Scenario("failed-snapshot", "bad", failed_snapshot(cleared=False)),
    Scenario("failed-snapshot-fixed", "ok", failed_snapshot(cleared=True)),
    Scenario(
        "host-staging", "bad", staging(synchronized=False), ("strict", "it refuses a batch that changes under it")
    ),
    Scenario("host-staging-fenced", "ok", staging(synchronized=True)),
)
