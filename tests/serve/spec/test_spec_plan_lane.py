"""Where a plan's table writes go: for a verify the plan lane, between two waits, and the schedule lane for all else (law 6)."""

from __future__ import annotations

from dataclasses import replace

from tests.serve.spec.planning import PlainTables
from warfence.core.modes import ForwardMode
from warfence.serve.holdings import Limits
from warfence.serve.planner import Plan, Planner
from warfence.serve.requests import Request

LIMITS = Limits(context=24, rows=4, slots=60, swa_slots=48, chunk=5, extend_rows=2, window=6, block=4)
VERIFY, EXTEND = ForwardMode.TARGET_VERIFY, ForwardMode.EXTEND


class NotingLane:
    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes

    def wait_lane(self, other: NotingLane) -> None:
        self.notes.append(f"{self.name} waits for {other.name}")


def notes_of(made: Planner, notes: list[str]) -> tuple[Plan | None, list[str]]:
    notes.clear()
    plan = made.plan()
    return plan, list(notes)


def test_slots_for_a_verify_are_written_on_the_plan_lane_between_two_waits_and_all_else_on_the_schedule_lane() -> None:
    notes: list[str] = []
    schedule, plan_lane = NotingLane("schedule", notes), NotingLane("plan", notes)
    made = Planner(LIMITS, PlainTables(LIMITS, notes), schedule, plan_lane)
    made.add(Request(0, (1, 2, 3), 12))
    (request,) = made.waiting
    plan, seen = notes_of(made, notes)
    assert plan is not None
    assert (plan.mode, seen) == (EXTEND, ["schedule writes req_to_token", "schedule writes full_to_swa"])
    plan, seen = notes_of(made, notes)
    assert plan is not None
    assert plan.mode is VERIFY
    writes = ["plan writes req_to_token", "plan writes full_to_swa"]
    assert seen == ["plan waits for schedule", *writes, "schedule waits for plan"]
    request.learn(1)
    request.learn(1, 4)
    notes.clear()
    made.learned(request)
    made.flush()
    assert notes == ["schedule writes full_to_swa"], "what a result frees is no plan for a verify"
    made.held.slots._free.clear()
    plan, seen = notes_of(made, notes)
    assert plan is None or plan.mode is not VERIFY
    assert all("plan" not in note for note in seen)


def test_without_a_plan_lane_or_without_writes_nobody_waits() -> None:
    notes: list[str] = []
    schedule, plan_lane = NotingLane("schedule", notes), NotingLane("plan", notes)
    alone = Planner(LIMITS, PlainTables(LIMITS, notes), schedule)
    alone.add(Request(0, (1, 2, 3), 12))
    for _ in range(3):
        alone.plan()
    assert set(notes) == {"schedule writes req_to_token", "schedule writes full_to_swa"}
    limits = replace(LIMITS, context=8, window=None)
    made = Planner(limits, PlainTables(limits, notes), schedule, plan_lane)
    made.add(Request(0, (1, 2, 3), 5))
    for _ in range(3):
        made.plan()
    plan, seen = notes_of(made, notes)
    assert plan is not None
    assert (plan.mode, seen) == (VERIFY, []), "the row has a slot at every position already"
