"""A planner in an overlap loop with a pretended device, which knows at once what it accepted; the host hears it a step late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from warfence.core.modes import ForwardMode
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.serve.holdings import Limits
from warfence.serve.planner import Plan, Planner
from warfence.serve.requests import Phase, Request

Draw = Callable[[int, int], int]  # a number from low to high, both included
MODES = (ForwardMode.EXTEND, ForwardMode.TARGET_VERIFY, ForwardMode.DECODE)


class PlainTables:
    """Tables that are written at once, in numpy. `notes`: (lane, table) of each scatter."""

    def __init__(self, limits: Limits, notes: list[str] | None = None) -> None:
        self.notes = notes
        self.arrays = {
            REQ_TO_TOKEN: np.zeros((limits.rows, limits.context), np.int32),
            FULL_TO_SWA: np.zeros((1, limits.slots), np.int32),
        }

    def write(self, lane: object, name: str, cells: np.ndarray, values: np.ndarray) -> None:
        assert len(set(cells.tolist())) == len(cells), "cells of one scatter are distinct"
        self.arrays[name].reshape(-1)[cells] = values
        if self.notes is not None:
            self.notes.append(f"{getattr(lane, 'name', lane)} writes {name}")


@dataclass(frozen=True)
class Step:
    """A launch of the pretended device. at: where each row stood; accepted: tokens that each brought."""

    plan: Plan
    at: list[int]
    accepted: list[int]


@dataclass
class Loop:
    """Runs requests of (prompt tokens, new tokens) to their end and checks every step."""

    limits: Limits
    shapes: list[tuple[int, int]]
    draw: Draw
    length: dict[Request, int] = field(default_factory=dict)  # positions truly in the cache
    returned: int = 0
    full_blocks: int = 0
    decodes: int = 0

    def __post_init__(self) -> None:
        self.tables = PlainTables(self.limits)
        self.planner = Planner(self.limits, self.tables, None)
        self.requests = [Request(i, tuple(range(n)), new) for i, (n, new) in enumerate(self.shapes)]
        for request in self.requests:
            self.planner.add(request)

    def run(self, most: int = 3000) -> None:
        previous: Step | None = None
        empty = 0
        for _ in range(most):
            if not self.planner.busy and previous is None:
                break
            fallbacks = self.planner.counts.fallbacks
            plan = self.planner.plan()
            empty = empty + 1 if plan is None and previous is None else 0
            assert empty < self.limits.rows, "nothing runs and nothing is planned"
            if plan is not None and plan.mode is ForwardMode.DECODE:
                assert self.planner.counts.fallbacks == fallbacks + 1, "a plain decode is a fallback, and counted"
                self.decodes += 1
            current = self.launch(plan) if plan is not None else None
            if previous is not None:
                self.process(previous)
            if current is not None:
                self.check_in_flight(current)
            previous = current
        else:
            raise AssertionError("the loop did not come to an end")
        self.check_end()

    def launch(self, plan: Plan) -> Step:
        """What the device would read and write is there, for the length that the row truly has."""
        assert plan.mode in MODES
        owned = [s for r in self.planner.running for s in r.slots]
        assert len(set(owned)) == len(owned), "a slot has one owner"
        assert 0 not in owned, "slot 0 is reserved"
        swa = [s for r in self.planner.running for s in r.swa.values()]
        assert len(set(swa)) == len(swa)
        at, accepted = [], []
        for request, row in zip(plan.requests, plan.rows, strict=True):
            decodes, new = row.from_relay, row.extend_len
            n = self.length[request] if decodes else row.prefix_len
            if decodes:
                assert row.prefix_len <= n <= row.prefix_len + request.slack - (new - 1), "within the host's bounds"
            elif row.prefix_len:
                assert n == self.length[request]
            self.check_row(request, row.row, n, min(n + new, self.limits.context))
            at.append(n)
            accepted.append(self.draw(1, new) if decodes else new)
            self.length[request] = n + accepted[-1]
        self.full_blocks += accepted.count(self.limits.block)
        return Step(plan, at, accepted)

    def check_row(self, request: Request, row: int, n: int, end: int) -> None:
        """Positions below `end` have a slot of this request in the table; from n's window on it is mapped."""
        assert self.tables.arrays[REQ_TO_TOKEN][row, :end].tolist() == request.slots[:end]
        if self.limits.window is not None:
            for position in range(max(0, n - self.limits.window + 1), end):
                mapped = self.tables.arrays[FULL_TO_SWA][0, request.slots[position]]
                assert mapped == request.swa[position] != 0, "everything in the true window is mapped"

    def check_in_flight(self, step: Step) -> None:
        """What came back since took nothing away that the launch in flight may write."""
        for request, row, n in zip(step.plan.requests, step.plan.rows, step.at, strict=True):
            if request.row:
                assert len(request.slots) >= min(n + row.extend_len, self.limits.context)

    def process(self, step: Step) -> None:
        """As the scheduler does: learn, end, return. One launch in ten brings an end-of-text token."""
        verify = step.plan.mode is ForwardMode.TARGET_VERIFY
        for request, emits, brought in zip(step.plan.requests, step.plan.emits, step.accepted, strict=True):
            if not emits or request.stopped:
                continue
            count = brought if verify else 1
            room = request.max_new_tokens - len(request.output)
            end = self.draw(1, count) if self.draw(0, 9) == 0 else count + 1
            n, held = min(count, room, end), len(request.slots)
            request.learn(n, self.limits.block if verify else 1)
            request.output += [0] * n
            if n in (room, end):
                request.stop()
                if request.phase is not Phase.DONE:
                    self.planner.release(request)
            elif verify:
                self.planner.learned(request)
                if request.row:
                    assert len(request.slots) == min(self.limits.context, request.cached + request.slack)
                    self.returned += held - len(request.slots)
        self.planner.flush()

    def check_end(self) -> None:
        assert all(r.phase is Phase.DONE for r in self.requests)
        assert all(r.stopped and 1 <= len(r.output) <= r.max_new_tokens for r in self.requests)
        held = self.planner.held
        for pool in (held.rows, held.slots, held.swa_slots):
            assert pool.free_count == pool.size - 1, f"{pool.name}: everything was given back"
        assert not self.tables.arrays[FULL_TO_SWA].any(), "no map entry outlives its request"
        assert held.counts.returned == self.returned
