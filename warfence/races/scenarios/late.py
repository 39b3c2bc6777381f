"""Waits that are stronger than any conflict needs: where each could bind instead, and what it waits for in vain.

Each conflict is credited to the wait that first put its second access behind the first one, and, where that wait came by way
of another lane, to those before it. A wait has to reach as far as the last step that was credited to it. Not judged: a wait
that brings nothing new, and one behind which nothing more is done. A statement in a loop is too strong only if each of its
turns is (the first turns of a loop need less).

In a loop each turn's wait is credited with what the next turn needs, so that none looks too strong. There the question is put
to the program itself: `steady` lets every turn's wait reach one operation less far, and asks whether all is still in order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from warfence.races.scenarios.named import misread, needed
from warfence.races.scenarios.operations import Path
from warfence.races.scenarios.order import Order, Pair, conflicts

Statement = tuple[Path, str]  # a wait of the file, and the lane that it waits for
WAITS = ("waits", "awaits", "takes", "syncs", "polls")


@dataclass(frozen=True, slots=True)
class Wait:
    """One wait as judged. step: the wait. upto: the step it waits for. needed: the last one that it has to wait for.

    needed is None where no conflict needs it. vain: operations between the two, in their order.
    """

    step: int
    upto: int
    needed: int | None
    vain: tuple[int, ...]
    path: Path
    source: str


def judged(order: Order, pairs: Sequence[Pair]) -> Iterator[Wait]:
    """Every wait of a trace without races."""
    credit: dict[int, int] = {}
    for pair in pairs:
        _credit(order, pair, credit)
    standing = set(order.standing)
    last = {step.lane: step.id for step in order.steps if step.touches}
    for step in order.steps:
        if step.kind not in WAITS or not step.joins or step.id in standing:
            continue
        upto = step.joins[0]
        source, until = order.lane[upto], order.position[upto]
        known = order.behind(step.id, {upto})[source]
        if source == order.lane[step.id] or until <= known:
            continue
        needed = credit.get(step.id, 0)
        if needed or last.get(step.lane, -1) > step.id:
            on = order.on[source]
            if needed:  # the middle of an operation is no place to wait for
                needed = order.position[order.ends[on[needed - 1]]]
            vain = tuple(one for one in on[max(needed, known) : until] if order.steps[one].touches)
            yield Wait(step.id, upto, on[needed - 1] if needed else None, vain, step.path, order.steps[upto].lane)


def too_strong(waits: Iterable[Wait]) -> list[Wait]:
    """The first one of each statement all of whose waits, in all traces, wait for something in vain."""
    same: dict[Statement, list[Wait]] = {}
    for one in waits:
        same.setdefault((one.path, one.source), []).append(one)
    return [group[0] for group in same.values() if all(one.vain for one in group)]


def steady(order: Order, waits: Sequence[Wait]) -> dict[Statement, Wait | None]:
    """Of each statement that waits more than once: how much weaker all its turns could be; None where no weaker will do."""
    pairs = [*conflicts(order), *needed(order)]
    needs: dict[int, int] = {}
    for pair in pairs:
        _credit(order, pair, needs, latest=True)
    turns: dict[Statement, list[Wait]] = {}
    for one in waits:
        turns.setdefault((one.path, one.source), []).append(one)
    found: dict[Statement, Wait | None] = {}
    for statement, same in turns.items():
        if len(same) < 2:
            continue
        if any(needs.get(one.step, 0) > order.without(one.upto, 1) for one in same):
            found[statement] = None
            continue

        def holds(less: int, same: list[Wait] = same) -> bool:
            weaker = Order(order.steps, {one.step: less for one in same})
            return all(weaker.before(*pair) for pair in pairs) and not any(misread(weaker))

        if not holds(1):
            found[statement] = None
            continue
        most, last = max(order.position[one.upto] for one in same), same[-1]
        less = 1
        while less < most and holds(less + 1):
            less += 1
        on, until = order.on[order.lane[last.upto]], order.position[last.upto]
        upto = order.without(last.upto, less)
        vain = tuple(one for one in on[upto:until] if order.steps[one].touches)
        found[statement] = replace(last, needed=on[upto - 1] if upto else None, vain=vain)
    return found


def _credit(order: Order, pair: Pair, credit: dict[int, int], latest: bool = False) -> None:
    """Walk back from the second access to the first one's lane, by the edges that first brought the order.

    latest: by those that brought the last news of that lane instead, which is what this turn of a loop waited for.
    """
    lane, position = order.lane[pair[0]], order.position[pair[0]]
    enough = order.clocks[pair[1]][lane] if latest else position

    def knows(step: int) -> bool:
        return order.clocks[step][lane] >= enough

    at = pair[1]
    while order.lane[at] != lane:
        on = order.on[order.lane[at]]
        at = on[bisect_left(on, True, hi=order.position[at] - 1, key=knows)]  # the first of its lane to know
        step = order.steps[at]
        came = next((one for one in step.after if one not in step.joins and knows(one)), None)
        if came is None:
            came = next(one for one in step.joins if knows(one))
            if step.kind in WAITS:
                source = order.on[order.lane[came]]
                first = bisect_left(source, True, hi=order.position[came] - 1, key=knows) + 1
                needed = position if order.lane[came] == lane else first
                credit[at] = max(credit.get(at, 0), needed)
        at = came
