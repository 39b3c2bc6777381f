"""Which combinations of the branches of a program are looked at.

A choice is plain when its branches differ by accesses only: they wait, record and hand over alike. Then nothing that it decides
changes the order of any two other steps, so a race between two accesses shows whenever the branches of these two are taken,
whatever all other plain choices take. It is enough that each two plain choices take each pair of their branches somewhere: some
16 combinations for fifteen choices instead of 2 ** 15. All others are multiplied. Right or wrong is decided so; that a wait is
too strong, which has to be so in all combinations, is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from warfence.core.errors import InputError
from warfence.races.scenarios.operations import Memories, Op, Reach, Threads, Unroller
from warfence.races.scenarios.program import Choose, Repeat, Scenario, Statement, Thread

FEW = 256  # combinations that are looked at one by one
MOST = 20_000


def variants(
    scenario: Scenario, values: Mapping[str, int] | None = None, apart: bool = True
) -> Iterator[tuple[Threads, Memories]]:
    """Combinations of choices, each as host threads (the first is `host`). values: parameters that differ.

    apart: plain choices are taken in pairs; else every combination. InputError: an unknown parameter, a cell, event or
    repetition out of range; more than MOST combinations, with the number.
    """
    first = Unroller(scenario, values or {})
    if _nested(scenario.body):
        yield from _one_by_one(scenario, values or {})
        return
    taken: Iterator[tuple[int, ...]] = product(*map(range, first.ways))
    count = prod(first.ways)
    if apart and count > FEW:
        plain = _plain(scenario, values or {}, first)
        rows = _rows(first.ways, plain)
        others = [range(1 if one else ways) for ways, one in zip(first.ways, plain, strict=True)]
        count = prod(map(len, others)) * len(rows)
        taken = (
            tuple(row[at] if plain[at] else one for at, one in enumerate(multiplied))
            for multiplied in product(*others)
            for row in rows
        )
    if count > MOST:
        raise InputError(
            f"scenario '{scenario.id}' has {count} combinations of choices that have to be looked at, and at most {MOST} are; "
            f"take fewer choices, or such as differ by accesses only"
        )
    for decisions in taken:
        unroller = Unroller(scenario, values or {}, decisions)
        yield unroller.threads, unroller.memories


def combinations(scenario: Scenario, values: Mapping[str, int] | None = None) -> int:
    """How many combinations of choices there are; 0 where choices lie within choices."""
    return 0 if _nested(scenario.body) else prod(Unroller(scenario, values or {}).ways)


def _nested(body: Sequence[Statement], inside: bool = False) -> bool:
    """Whether a choice lies within another one."""
    for one in body:
        if isinstance(one, Choose):
            if inside or any(_nested(branch, True) for branch in one.branches):
                return True
        elif isinstance(one, Repeat | Thread) and _nested(one.body, inside):
            return True
    return False


def _one_by_one(scenario: Scenario, values: Mapping[str, int]) -> Iterator[tuple[Threads, Memories]]:
    """Choices within choices: which there are depends on those before."""
    decisions: list[int] = []
    while True:
        unroller = Unroller(scenario, values, decisions)
        yield unroller.threads, unroller.memories
        decisions = unroller.taken
        while decisions and decisions[-1] + 1 == unroller.ways[len(decisions) - 1]:
            decisions.pop()
        if not decisions:
            return
        decisions[-1] += 1


def _plain(scenario: Scenario, values: Mapping[str, int], first: Unroller) -> list[bool]:
    """Of each choice, whether its branches differ by accesses only. A read that names a launch looks at three places at once."""
    branches = [[_skeleton(ops, first.memories) for ops in first.branches]]
    named = any(one.launch for ops in first.threads.values() for op in ops for one in _reaches(op))
    for branch in range(1, max(first.ways)):
        again = Unroller(scenario, values, [min(branch, ways - 1) for ways in first.ways])
        branches.append([_skeleton(ops, again.memories) for ops in again.branches])
        named |= any(one.launch for ops in again.threads.values() for op in ops for one in _reaches(op))
    return [not named and all(one == of[0] for one in of) for of in zip(*branches, strict=True)]


def _reaches(op: Op) -> Iterator[Reach]:
    for one in (op, *op.steps):
        yield from one.reaches


def _skeleton(ops: Sequence[Op], memories: Memories) -> tuple[Op, ...]:
    """All that waits, records, or says what a name means. Accesses of arrays do: a donation waits for them."""
    kept = []
    for op in ops:
        steps = tuple(step for step in op.steps if not _only_touches(step, memories))
        if steps or not (op.kind == "launch" or _only_touches(op, memories)):
            alike = tuple(replace(step, path=(), line=0) for step in steps)
            kept.append(replace(op, path=(), line=0, steps=alike))
    return tuple(kept)


def _only_touches(op: Op, memories: Memories) -> bool:
    return op.kind == "access" and all(memories.kind.get(one.memory) in ("table", "pinned") for one in op.reaches)


def _rows(ways: Sequence[int], plain: Sequence[bool]) -> list[tuple[int, ...]]:
    """Each two plain choices take each pair of branches in some row: for any two there is a bit in which their places differ."""
    places = {at: place for place, at in enumerate(at for at, one in enumerate(plain) if one)}
    most = max((ways[at] for at in places), default=1)
    rows: dict[tuple[int, ...], None] = {}
    for bit in range(max(1, (len(places) - 1).bit_length())):
        for pair in product(range(most), repeat=2):
            row = tuple(pair[places[at] >> bit & 1] % ways[at] if at in places else 0 for at in range(len(ways)))
            rows[row] = None
    return [*rows]
