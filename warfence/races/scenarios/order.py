"""The partial order of a trace's steps: who can never run, and which conflicting accesses nothing puts into order.

A clock says for each lane how many of its steps come before a step, itself included. Two accesses conflict when their lanes
differ, their cells overlap and one of them is no read.

`warfence.races.check.clocks` is the same mathematics a second time, on purpose: it goes through the log of an execution, this one
through the calls of a program. Each is the other's judge, so they share no code.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from types import MappingProxyType

from warfence.races.scenarios.operations import Reach
from warfence.races.scenarios.steps import Step

Pair = tuple[int, int]  # ids of two steps, the one that was called first in front


class Order:
    """Clocks of all steps, and who can never run."""

    def __init__(self, steps: Sequence[Step], weaker: Mapping[int, int] = MappingProxyType({})) -> None:
        """weaker: of some waits, how many operations of the lane that they wait for they are not to wait for any more."""
        self.steps, self._weaker = steps, weaker
        names = dict.fromkeys(step.lane for step in steps)
        self.lanes = {name: number for number, name in enumerate(names)}
        self.lane = [self.lanes[step.lane] for step in steps]
        self.on: list[list[int]] = [[] for _ in names]  # the steps of each lane
        self.position: list[int] = []
        for step in steps:
            on = self.on[self.lane[step.id]]
            on.append(step.id)
            self.position.append(len(on))
        self.ends = self._operations()
        self.turns = _in_turn(steps)
        ran = set(self.turns)
        self.standing = [step.id for step in steps if step.id not in ran]
        self.clocks: list[list[int]] = [[] for _ in steps]
        for one in self.turns:
            clock = self.behind(one)
            clock[self.lane[one]] = self.position[one]
            self.clocks[one] = clock

    def _operations(self) -> list[int]:
        """The last step of the operation that each step is part of.

        Accesses of one lane under one name are one operation where they are called one right behind the other, in the order
        of the file: a next turn of a loop begins anew.
        """
        ends = list(range(len(self.steps)))
        for on in self.on:
            for one, later in pairwise(reversed(on)):
                first, second = self.steps[later], self.steps[one]
                together = second.call - first.call <= 1 and first.path < second.path and first.launch == second.launch
                if first.kind == second.kind == "access" and first.stage == second.stage != "" and together:
                    ends[later] = ends[one]
        return ends

    def before(self, first: int, second: int) -> bool:
        """Whether `second` can run only when `first` is done."""
        return self.clocks[second][self.lane[first]] >= self.position[first]

    def behind(self, step: int, but: Collection[int] = ()) -> list[int]:
        """The clock that a step has from its direct predecessors, but for these."""
        clock = [0] * len(self.on)
        less = self._weaker.get(step, 0)
        for earlier in self.steps[step].after:
            if earlier in but:
                continue
            theirs = self.clocks[earlier]
            if less and earlier in self.steps[step].joins:
                theirs = theirs[:]
                theirs[self.lane[earlier]] = self.without(earlier, less)
            clock = list(map(max, clock, theirs))
        return clock

    def without(self, step: int, less: int) -> int:
        """The position on the step's lane in front of the last `less` operations up to it."""
        on = self.on[self.lane[step]]
        position = self.position[step]
        while position and less:
            position -= 1
            one = on[position]
            first = not position or self.ends[on[position - 1]] != self.ends[one]
            less -= self.steps[one].touches and first
        return position


def standing(steps: Sequence[Step]) -> list[int]:
    """Ids of the steps that can never run."""
    ran = set(_in_turn(steps))
    return [step.id for step in steps if step.id not in ran]


def conflicts(order: Order) -> list[Pair]:
    """Conflicting pairs, by the call of the second one; of each cell only neighbours.

    A read is paired with the last write before it, a write with that, too, and with each lane's last read since. If all of
    these are in order, so are all others, which have one of these writes between them: the number of pairs does not grow
    with the square of the length. A read that names a launch is in no pair: see `warfence.races.scenarios.named`.
    """
    found: list[Pair] = []
    cells = _Cells(order.steps)
    standing = set(order.standing)
    for step in order.steps:
        if step.id in standing:
            continue
        lane = order.lane[step.id]
        first: set[int] = set()
        reaches = [one for one in step.reaches if one.verb != "allocates" and not one.launch]
        for one in reaches:
            for cell in cells.of(one):
                first.update(cell.values() if one.verb != "reads" else (cell[-1],) if -1 in cell else ())
        found += [(earlier, step.id) for earlier in sorted(first) if order.lane[earlier] != lane]
        for one in reaches:
            for cell in cells.of(one):
                if one.verb != "reads":
                    cell.clear()
                cell[lane if one.verb == "reads" else -1] = step.id
    return found


class _Cells:
    """Who touched which cells last. Cells that are always touched together are one: {lane: its last read, -1: last write}."""

    def __init__(self, steps: Sequence[Step]) -> None:
        edges: dict[str, set[int]] = defaultdict(set)
        for step in steps:
            for one in step.reaches:
                edges[one.memory].update((one.begin, one.end))
        self._edges = {memory: sorted(found) for memory, found in edges.items()}
        self._cells: dict[str, list[dict[int, int]]] = {
            memory: [{} for _ in found] for memory, found in self._edges.items()
        }

    def of(self, reach: Reach) -> list[dict[int, int]]:
        edges = self._edges[reach.memory]
        return self._cells[reach.memory][bisect_left(edges, reach.begin) : bisect_left(edges, reach.end)]


def _in_turn(steps: Sequence[Step]) -> list[int]:
    """Ids in an order in which all can run that ever can; that of the calls wherever nothing is against it."""
    if all(earlier < step.id for step in steps for earlier in step.after) and not any(
        step.needs and not step.joins for step in steps
    ):
        return list(range(len(steps)))
    left = [len(step.after) + (step.needs > 0 and not step.joins) for step in steps]  # an await of no record stands
    behind: dict[int, list[int]] = defaultdict(list)
    for step in steps:
        for earlier in step.after:
            behind[earlier].append(step.id)
    ready = [step.id for step in steps if not left[step.id]]
    turns = []
    while ready:
        one = heappop(ready)
        turns.append(one)
        for later in behind[one]:
            left[later] -= 1
            if not left[later]:
                heappush(ready, later)
    return turns
