"""An interleaving that goes wrong: all steps in such an order, and the few of them that tell why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warfence.races.scenarios.order import Order, Pair
from warfence.races.scenarios.steps import Step


@dataclass(frozen=True, slots=True)
class Witness:
    """first, second: ids of the two accesses, `first` called first; in `order` second runs before first.

    order: the ids of all steps that can run, in an order that every wait permits. shown: the shortest chain of waits that
    puts `second` behind anything of first's lane, and the two. missing: the edge that would forbid this order.
    wrong_write: the order is the only one, and `second` reads what `first` wrote but should not see that.
    """

    first: int
    second: int
    order: tuple[int, ...]
    shown: tuple[int, ...]
    missing: str
    wrong_write: bool = False


def choose(races: Sequence[Pair]) -> Pair:
    """The race to show: the earliest second access, the last first one."""

    return min(races, key=lambda pair: (pair[1], -pair[0]))


def reversed_pair(order: Order, pair: Pair, seen: int | None = None) -> Witness:
    """The witness of two accesses that nothing orders as they have to be. seen: what runs before both of them."""
    first, second = pair
    head = [] if seen is None else [one for one in order.turns if order.before(one, seen)]
    known_before = set(head)
    head += [one for one in order.turns if order.before(one, second) and one not in known_before]
    inside = set(head)
    tail = [one for one in order.turns if one not in inside]
    a, b = order.steps[first], order.steps[second]
    known = order.clocks[second][order.lane[first]]
    chain = _chain(order, second, order.lane[first], known) if known else []
    return Witness(first, second, (*head, *tail), (*chain, second, first), _missing(a, b, order, known))


def _missing(a: Step, b: Step, order: Order, known: int) -> str:
    waiter = "the host" if b.lane == b.thread else f"lane {b.lane}"
    before = "before" if b.lane != b.thread else "before it"
    text = (
        f"{waiter} does not wait for lane {a.lane} behind '{a.title}' {before} {'' if b.lane == b.thread else 'its '}"
    )
    text += f"'{b.title}'"
    between = [one for one in order.on[order.lane[a.id]][known : order.position[a.id]] if order.steps[one].touches]
    if not known:
        return f"{text}; it waits for nothing of that lane"
    return f"{text}; it waits up to {len(between)} operation{'s' if len(between) != 1 else ''} too early"


def _chain(order: Order, second: int, lane: int, known: int) -> list[int]:
    """From the last step of the lane that `second` is behind, to it: those steps where the way changes lanes."""
    way = [second]
    while order.lane[way[-1]] != lane:
        way.append(
            next(one for one in sorted(order.steps[way[-1]].after, reverse=True) if order.clocks[one][lane] >= known)
        )
    way.reverse()
    return [
        one
        for at, one in enumerate(way[:-1])
        if order.lane[one] != order.lane[way[at + 1]] or (at and order.lane[one] != order.lane[way[at - 1]])
    ]
