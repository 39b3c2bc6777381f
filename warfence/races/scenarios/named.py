"""Reads that name the launch whose value they have to see. The order of the calls is nothing to them.

Such a read is right when that launch's write comes before it, and every other write of its cells comes before that write or
behind the read. Whatever is not ordered so can go wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from warfence.races.scenarios.operations import Reach
from warfence.races.scenarios.order import Order, Pair
from warfence.races.scenarios.steps import Step
from warfence.races.scenarios.witness import Witness, reversed_pair


@dataclass(frozen=True, slots=True)
class Misread:
    """One way in which a named read sees another value.

    pair: two accesses that nothing orders as they have to be, the one that has to come first in front; None where the wrong
    order is the only one. read: the read. other: the write that it sees (None: there is none). seen: the write that it should.
    """

    read: int
    launch: int
    reach: Reach
    other: int | None
    pair: Pair | None = None
    seen: int | None = None


def misread(order: Order) -> Iterator[Misread]:
    """Every named read that can see another value, by the order of the calls."""
    for step, one, writes in _named(order):
        yield from _of(order, step, one, writes)


def _named(order: Order) -> Iterator[tuple[Step, Reach, list[tuple[Step, Reach]]]]:
    """Each named read, with all writes of its cells."""
    writes: dict[str, list[tuple[Step, Reach]]] = defaultdict(list)
    for step in order.steps:
        for one in step.reaches:
            if one.verb not in ("reads", "allocates"):
                writes[one.memory].append((step, one))
    standing = set(order.standing)
    for step in order.steps:
        if step.id in standing:
            continue
        for one in step.reaches:
            if one.verb == "reads" and one.launch:
                yield step, one, [write for write in writes[one.memory] if _overlap(write[1], one)]


def needed(order: Order) -> list[Pair]:
    """The pairs of accesses that named reads need in order, where nothing is misread: what waits are good for."""
    found: list[Pair] = []
    for step, one, writes in _named(order):
        for write, _ in writes:
            if write.launch == one.launch or order.before(write.id, step.id):
                found.append((write.id, step.id))
            elif write is not step:
                found.append((step.id, write.id))
    return [pair for pair in found if order.lane[pair[0]] != order.lane[pair[1]]]


def witness(order: Order, found: Misread) -> Witness:
    """An interleaving in which the read sees the other value."""
    if found.pair is not None:
        return reversed_pair(order, found.pair, found.seen)
    other = order.steps[found.other] if found.other is not None else None
    if other is None:
        whose = "what was there before the first write"
    else:
        whose = f"what launch {other.launch} wrote" if other.launch else f"what '{other.title}' wrote"
    missing = (
        f"the value of launch {found.launch} is not in {found.reach.cells} when this read comes, so it sees {whose}; no wait "
        f"repairs that, a write has to come first"
    )
    first = other.id if other is not None else found.read
    return Witness(first, found.read, tuple(order.turns), tuple(dict.fromkeys((first, found.read))), missing, True)


def _of(order: Order, read: Step, reach: Reach, writes: list[tuple[Step, Reach]]) -> Iterator[Misread]:
    right = [(step, one) for step, one in writes if step.launch == reach.launch and step is not read]
    if not right:
        before = [step.id for step, _ in writes if order.before(step.id, read.id)]
        yield Misread(read.id, reach.launch, reach, before[-1] if before else None)
        return
    for step, _ in right:
        if not order.before(step.id, read.id):
            forced = order.before(read.id, step.id)
            yield Misread(read.id, reach.launch, reach, None, None if forced else (step.id, read.id))
            return
    for step, one in writes:
        if step.launch == reach.launch or step is read or order.before(read.id, step.id):
            continue
        over = [w.id for w, its in right if _overlap(its, one)] or [w.id for w, _ in right]
        if all(order.before(step.id, w) for w in over):
            continue
        last = over[-1]
        forced = order.before(last, step.id) and order.before(step.id, read.id)
        yield Misread(read.id, reach.launch, reach, step.id, None if forced else (read.id, step.id), last)


def _overlap(one: Reach, other: Reach) -> bool:
    return one.begin < other.end and other.begin < one.end
