"""The family `fence`: the loop of a server, with its barrier in every place and every policy, and what arithmetic says of it.

Stages of a runner's launch: load_batch, page_table, layer, tail. Those up to `last` read the shared tables. A step has the
target's launch, and the draft's behind it where `owner` is draft. The barrier asks the mailbox of `asked` and drops the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from warfence.races.scenarios.build import Builder, Subject
from warfence.races.sweep.case import Grid

STAGES = ("load_batch", "page_table", "layer", "tail")
# policy -> behind which stage of its launch a runner records
RECORDED = {"pre_replay": 0, "in_graph": 1, "post_replay": 2}
# `off` has no barrier; `none` publishes nothing; `coarse` publishes and is forced to wait for the lane
POLICIES = ("off", "none", *RECORDED, "coarse")
BARRIERS = ("after_launch", "after_result", "loop_top")
WRITES = ("plan", "result", "both")
PLAN_LANES = ("absent", "inherits", "bypasses")
RUNNERS = ("target", "draft")


@dataclass(frozen=True)
class Place:
    """policy: of POLICIES. last: the last stage that reads the tables, in each launch. depth: events in the ring.

    writes: which ones the schedule lane makes, when planning, when it processes a result, or both. barrier: where it stands.
    plan_lane: whether that waits for the schedule lane. owner: the runner of the last launch of a step. asked: whose mailbox.
    """

    policy: str
    last: int
    writes: str
    barrier: str
    plan_lane: str
    owner: str
    asked: str
    depth: int
    steps: int

    def __str__(self) -> str:
        return (
            f"{self.policy}, reads up to {STAGES[self.last]}, writes {self.writes}, barrier {self.barrier}, plan lane "
            f"{self.plan_lane}, owner {self.owner}, asked {self.asked}, events {self.depth}, steps {self.steps}"
        )


def oracle(at: Place) -> str:
    """ok, bad or over, from where the reads of a step end, where its ticket is recorded, and what stands behind the barrier."""
    result, plan = at.writes != "plan", at.writes != "result"
    if at.plan_lane == "bypasses" and (plan or at.steps > 1):
        return "bad"  # it reads rows while they are written, and writes slots while they are read
    if result and at.barrier != "after_launch":
        return "bad"  # results of a step are processed before the barrier of that step
    if not result and at.steps == 1:
        return "ok"  # nothing is written behind the only launch
    length = len(STAGES) * (1 + RUNNERS.index(at.owner))
    boundary = length - len(STAGES) + at.last
    release = length - 1
    if at.policy in RECORDED and RUNNERS.index(at.asked) <= RUNNERS.index(at.owner):
        release = len(STAGES) * RUNNERS.index(at.asked) + RECORDED[at.policy]
    if at.policy == "off" or release < boundary:
        return "bad"
    return "over" if release > boundary else "ok"


def build(at: Place, b: Builder) -> None:
    """The program."""
    forward, schedule, plan = b.lanes("forward", "schedule", "plan")
    b.declare("table", "rows[2]", "slots[1]", "private[1]")
    b.declare("event", *(f"{runner}_read[{at.depth}]" for runner in RUNNERS))
    b.declare("mailbox", *RUNNERS)
    runners = RUNNERS[: RUNNERS.index(at.owner) + 1]
    with b.repeat("i", 1, at.steps):
        if at.barrier == "loop_top":
            _barrier(at, b, schedule, forward)
        if at.writes != "result":
            schedule.writes("rows[0]", stage="planning")
        if at.plan_lane != "absent":
            if at.plan_lane == "inherits":
                plan.waits_lane(schedule)
            plan.reads("rows", writes="slots")
        forward.waits_lane(schedule)
        if at.plan_lane != "absent":
            forward.waits_lane(plan)
        for runner in runners:
            _launch(at, b, forward, runner)
        if at.barrier == "after_launch":
            _barrier(at, b, schedule, forward)
        if at.writes != "plan":
            schedule.writes("rows[1]", stage="result")
        if at.barrier == "after_result":
            _barrier(at, b, schedule, forward)


def _launch(at: Place, b: Builder, forward: Subject, runner: str) -> None:
    event = f"{runner}_read[i % {at.depth}]"
    publishes = at.policy in RECORDED or at.policy == "coarse"
    with b.launch("i", forward) as step:
        for number, stage in enumerate(STAGES):
            if number <= at.last:
                step.says(f"reads rows, reads slots as {stage}")
            else:
                step.reads("private", stage=stage)
            if publishes and number == RECORDED.get(at.policy, 2):
                step.records(event)
    if publishes:
        b.host.publishes(event, runner)


def _barrier(at: Place, b: Builder, schedule: Subject, forward: Subject) -> None:
    if at.policy == "off":
        return
    for runner in RUNNERS:
        if runner != at.asked or at.policy == "coarse":
            b.host.says(f"clears {runner}")
    schedule.takes(at.asked, otherwise=forward)


FENCE = Grid(
    name="fence",
    about="policy x last read x writes x barrier x plan lane x owner x mailbox x ring x steps, of a server's loop",
    axes=lambda steps: {
        "policy": POLICIES,
        "last": range(len(STAGES)),
        "writes": WRITES,
        "barrier": BARRIERS,
        "plan_lane": PLAN_LANES,
        "owner": RUNNERS,
        "asked": RUNNERS,
        "depth": (1, 2),
        "steps": range(1, steps + 1),
    },
    place=Place,
    oracle=oracle,
    build=build,
    group="fence too early",
)
