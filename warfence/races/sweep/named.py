"""The family `named`: inputs in a ring of slots, each read by its launch's number, with all copies called before all reads.

Copy i writes slot i % depth for launch i, behind read `i - depth + shift` at the earliest. The order of the calls says nothing
here: a read is right when it sees its own launch's copy.
"""

from __future__ import annotations

from dataclasses import dataclass

from warfence.races.scenarios.build import Builder
from warfence.races.sweep.case import Grid

FENCES = ("none", "early", "exact", "late")  # of which read a copy awaits the record
SHIFT = {"early": -1, "exact": 0, "late": 1}


@dataclass(frozen=True)
class Place:
    """fence: one of FENCES. depth: slots. waits: whether a read waits for its copy. steps: copies, and reads."""

    fence: str
    depth: int
    waits: bool
    steps: int

    def __str__(self) -> str:
        return f"copies await {self.fence}, slots {self.depth}, reads wait {self.waits}, steps {self.steps}"


def oracle(at: Place) -> str:
    """ok, bad, over or cycle, by counting launches."""
    if at.fence == "late" and at.depth == 1 and at.waits:
        return "cycle"  # a copy awaits the read of its own value
    if not at.waits:
        return "bad"
    if at.fence in ("none", "early") and at.steps > at.depth:
        return "bad"
    return "over" if at.fence == "late" and at.steps >= at.depth else "ok"


def build(at: Place, b: Builder) -> None:
    """The program."""
    forward, copy = b.lanes("forward", "copy")
    b.declare("table", f"slot[{at.depth}]")
    b.declare("event", f"ready[{at.steps + 1}]", "consumed")
    back = at.depth - SHIFT.get(at.fence, 0)
    unfenced = at.steps if at.fence == "none" else min(back, at.steps)
    for first, last in ((1, unfenced), (unfenced + 1, at.steps)):
        with b.repeat("i", first, last):
            if first > unfenced:
                copy.says(f"awaits consumed record i - {back}")
            with b.launch("i", copy) as step:
                step.writes(f"slot[i % {at.depth}]")
            copy.records("ready[i]")
    with b.repeat("i", 1, at.steps):
        if at.waits:
            forward.waits("ready[i]")
        forward.says(f"reads slot[i % {at.depth}] of launch i").records("consumed")


NAMED = Grid(
    name="named",
    about="what a copy awaits x slots x whether reads wait x steps: each read names the launch whose copy it has to see",
    axes=lambda steps: {
        "fence": FENCES,
        "depth": range(1, steps + 2),
        "waits": (True, False),
        "steps": range(1, 2 * steps + 1),
    },
    place=Place,
    oracle=oracle,
    build=build,
    group="host staging",
)
