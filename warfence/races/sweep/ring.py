"""The family `ring`: staging slots and events in rings, with a writer that waits for a launch some steps back.

Launch i reads slot i % depth. Before it is issued that slot is written, behind a wait for the event of launch i - lag; but
what the event holds is its latest record. So the ring of events shortens the lag, and the ring of slots says how long it may be.
"""

from __future__ import annotations

from dataclasses import dataclass

from warfence.races.scenarios.build import Builder
from warfence.races.sweep.case import Grid

STAGES = ("head", "look_up", "tail")  # the slot is read in look_up
LAST_READ = 1
WRITERS = ("host", "schedule")


@dataclass(frozen=True)
class Place:
    """depth: slots. events: in their ring. lag: how many launches back the writer waits. recorded: behind which stage."""

    writer: str
    depth: int
    events: int
    lag: int
    recorded: int
    steps: int

    def __str__(self) -> str:
        return (
            f"written by {self.writer}, slots {self.depth}, events {self.events}, recorded behind {STAGES[self.recorded]}, "
            f"lag {self.lag}, steps {self.steps}"
        )


def oracle(at: Place) -> str:
    """ok, bad or over, by counting launches."""
    lag = (at.lag - 1) % at.events + 1  # an event that was recorded again holds a later launch
    reaches_back = lag if at.recorded >= LAST_READ else lag + 1  # the youngest launch whose reads are done for sure
    if at.steps > at.depth < reaches_back:
        return "bad"
    if at.steps <= lag:
        return "ok"  # no wait finds a record
    # With a shorter lag than there are slots each turn waits for a launch that reads another slot.
    return "ok" if at.recorded == LAST_READ and at.steps > at.depth == lag else "over"


def build(at: Place, b: Builder) -> None:
    """The program."""
    forward, schedule = b.lanes("forward", "schedule")
    b.declare("pinned" if at.writer == "host" else "table", f"slot[{at.depth}]", "private[1]")
    b.declare("event", f"read[{at.events}]")
    back = at.events * at.lag - at.lag  # no negative index
    with b.repeat("i", 1, at.steps):
        event = f"read[(i + {back}) % {at.events}]"
        if at.writer == "host":
            b.host.syncs(event).writes(f"slot[i % {at.depth}]")
        else:
            schedule.waits(event).writes(f"slot[i % {at.depth}]")
            forward.waits_lane(schedule)
        with b.launch("i", forward) as step:
            for number, stage in enumerate(STAGES):
                step.reads(f"slot[i % {at.depth}]" if number == LAST_READ else "private", stage=stage)
                if number == at.recorded:
                    step.records(f"read[i % {at.events}]")


RING = Grid(
    name="ring",
    about="writer x slots x events x lag of the wait x place of the record x steps",
    axes=lambda steps: {
        "writer": WRITERS,
        "depth": range(1, steps + 2),
        "events": range(1, steps + 2),
        "lag": range(1, steps + 2),
        "recorded": range(len(STAGES)),
        "steps": range(1, 2 * steps + 1),
    },
    place=Place,
    oracle=oracle,
    build=build,
    group="host staging",
)
