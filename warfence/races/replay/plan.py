"""What is tried on the lanes: the orders that would go wrong if anything permitted them, and what the explorer says of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice

from warfence.races.replay.calls import called_order
from warfence.races.scenarios.explore import Outcome, explore, traces
from warfence.races.scenarios.named import needed
from warfence.races.scenarios.operations import Memories
from warfence.races.scenarios.order import Order, Pair, conflicts
from warfence.races.scenarios.repair import repair
from warfence.races.scenarios.steps import Refused, Step, Trace

Values = Mapping[str, int] | None
MOST_TRACES = 4  # of a right program with choices or several host threads
MOST_SEARCHED = 1000  # of a bad one, for a race that can be forced in the order of its calls


@dataclass(frozen=True)
class Attempt:
    """One run of a trace. first: orders the accesses that have to run in front of `tried`, which is tried while `held` stands
    at its gate; then all others of `rest`.

    passes: whether the explorer says that `tried` can run then. conflict: whether the two conflict. Without `tried` all of
    `rest` runs one after the other.
    """

    trace: Trace
    memories: Memories
    rest: tuple[int, ...]
    first: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()  # accesses in front of `tried` that stand with `held`
    held: int | None = None
    tried: int | None = None
    passes: bool = False
    conflict: bool = True


def attempts(outcome: Outcome, values: Values = None) -> list[Attempt]:
    """What shows the verdict of an explored scenario; nothing where no value can show it. values: its parameters."""
    trace, memories = outcome.trace, outcome.trace.memories
    order = called_order(trace)
    if outcome.verdict in ("cycle", "error"):
        return [Attempt(trace, memories, _accesses(order, order.turns))]
    if outcome.verdict == "bad":
        return _races(outcome, values)
    if outcome.verdict == "over":
        tried = [(late.vain[0], _first_behind(order, late.step)) for late in outcome.late]
        return [_attempt(trace, memories, order, pair, order.turns, conflict=False) for pair in tried]
    return [one for trace, memories in traces_of(outcome, values) for one in _reversals(trace, memories)]


def repaired_attempts(outcome: Outcome, values: Values = None) -> tuple[Outcome, list[Attempt]] | None:
    """The repaired twin of a bad program in the order that went wrong; None where no added wait repairs it.

    Where the twin never makes the same accesses, whatever shows its own verdict.
    """
    repaired = repair(outcome, values)
    if repaired is None or outcome.witness is None:
        return None
    twin = explore(repaired.scenario, values)
    wanted = _names(outcome.order)
    for trace, memories in traces_of(twin, values, MOST_SEARCHED):
        order = called_order(trace)
        if (names := _names(order)).keys() == wanted.keys():  # the same choices were made
            here = {step: names[name] for name, step in wanted.items()}
            pair = (here[outcome.witness.first], here[outcome.witness.second])
            return twin, [_attempt(trace, memories, order, pair, order.turns)]
    return twin, attempts(twin, values)


def _races(outcome: Outcome, values: Values) -> list[Attempt]:
    """The witness; where the calls of several host threads rule that out in its trace, the first race that can be forced."""
    witness = outcome.witness
    if witness and witness.wrong_write:
        return [Attempt(outcome.trace, outcome.trace.memories, _accesses(outcome.order, witness.order))]
    first = [(outcome.trace, outcome.trace.memories)]
    for trace, memories in chain(first, traces_of(outcome, values, MOST_SEARCHED)):
        explored, order = Order(trace.steps), called_order(trace)
        pairs = [pair for pair in conflicts(explored) if not explored.before(*pair)]
        if witness and trace is outcome.trace:
            pairs.insert(0, (witness.first, witness.second))
        for pair in (_writing(order, one) for one in pairs):
            if not order.before(*pair) and not any(_allocates(order.steps[one]) for one in pair):
                return [_attempt(trace, memories, order, pair, order.turns)]
    return []


def traces_of(outcome: Outcome, values: Values = None, most: int = MOST_TRACES) -> Iterator[tuple[Trace, Memories]]:
    """The first traces of a program that are finished: nothing in them is refused."""
    for ops, memories in islice(traces(outcome.scenario, values), most):
        trace = Trace(memories)
        with suppress(Refused):
            for op in ops:
                trace.call(op)
            trace.finish()
            yield trace, memories


def _writing(order: Order, pair: Pair) -> Pair:
    """An allocation leaves no value: the first write into the block instead, where the pair does not order that either."""
    first, second = pair
    if not _allocates(order.steps[second]):
        return pair
    block = order.steps[second].reaches[0].memory
    for step in order.steps[second + 1 :]:
        writes = any(one.verb == "writes" and one.memory == block for one in step.reaches)
        if writes and order.before(second, step.id) and not order.before(first, step.id):
            return first, step.id
    return pair


def _allocates(step: Step) -> bool:
    return any(one.verb == "allocates" for one in step.reaches)


def _reversals(trace: Trace, memories: Memories) -> Iterator[Attempt]:
    """Each two statements that conflict, the second one tried first. Where none do: two others, which nothing orders."""
    order = called_order(trace)
    pairs = {(order.steps[a].path, order.steps[b].path): (a, b) for a, b in [*conflicts(order), *needed(order)]}
    for pair in pairs.values() or _unordered(order):
        yield _attempt(trace, memories, order, pair, order.turns, conflict=bool(pairs))
    if not pairs and not _unordered(order):
        yield Attempt(trace, memories, _accesses(order, order.turns))


def _unordered(order: Order) -> list[Pair]:
    accesses = [step.id for step in order.steps if step.reaches]
    pairs = ((a, b) for b in reversed(accesses) for a in accesses if a < b and not order.before(a, b))
    return [pair for pair in pairs if order.lane[pair[0]] != order.lane[pair[1]]][:1]


def _attempt(
    trace: Trace, memories: Memories, order: Order, pair: Pair, turns: Sequence[int], conflict: bool = True
) -> Attempt:
    held, tried = pair
    needed = [one for one in _accesses(order, turns) if order.before(one, tried) and one not in pair]
    behind = tuple(one for one in needed if order.before(held, one))
    first = tuple(one for one in needed if one not in behind)
    rest = (held, *behind, *(one for one in _accesses(order, turns) if one not in (*needed, held)))
    return Attempt(trace, memories, rest, first, behind, held, tried, not order.before(held, tried), conflict)


def _accesses(order: Order, turns: Sequence[int]) -> tuple[int, ...]:
    return tuple(one for one in turns if order.steps[one].reaches)


def _first_behind(order: Order, wait: int) -> int:
    return next(one.id for one in order.steps if one.reaches and one.id > wait and order.before(wait, one.id))


def _names(order: Order) -> dict[tuple[str, int, str, int], int]:
    """Each access, as another trace of nearly the same program knows it: lane, line, title, and which one of those alike."""
    alike: Counter[tuple[str, int, str]] = Counter()
    names = {}
    for step in order.steps:
        if step.reaches:
            name = (step.lane, step.line, step.title)
            names[*name, alike[name]] = step.id
            alike[name] += 1
    return names
