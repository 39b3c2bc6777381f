"""The orders in which several host threads can make their calls, one for each that can make a difference.

Two calls depend on each other when they use the same lane, event, mailbox, block or array, and one of them changes it; where a
lane can await a later record, memory that one of them writes, too.
Orders that differ only by calls that do not depend on each other permit the same executions, so that one of them stands
for all: a call that depends on no call of another thread is made at once, and of the others sleep sets leave out every
order that was tried under another name (Godefroid, 1996).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from warfence.races.scenarios.operations import Memories, Op
from warfence.races.scenarios.order import standing
from warfence.races.scenarios.steps import Refused, Trace

Uses = tuple[frozenset[str], frozenset[str]]  # what a call changes, and what it looks at


def orders(threads: Mapping[str, Sequence[Op]], memories: Memories) -> Iterator[list[Op]]:
    """Every order that can differ from the others."""
    if len(threads) == 1:
        yield list(*threads.values())
        return
    calls = [list(ops) for ops in threads.values()]
    awaits = any(op.kind == "awaits" for ops in calls for op in ops)
    uses = [[_uses(op, awaits) for op in ops] for ops in calls]
    shared = []
    for at, mine in enumerate(uses):
        others = [one for far, theirs in enumerate(uses) if far != at for one in theirs]
        together = (
            frozenset[str]().union(*(one[0] for one in others)),
            frozenset[str]().union(*(one[1] for one in others)),
        )
        shared.append([_depend(one, together) for one in mine])
    yield from _go_on(calls, uses, shared, [0] * len(calls), [], {}, Blocked(threads, memories))


def _go_on(
    calls: list[list[Op]], uses: list[list[Uses]], shared: list[list[bool]],
    at: list[int], made: list[Op], asleep: dict[int, Uses], blocked: Blocked,
) -> Iterator[list[Op]]:  # fmt: skip
    at, made = at[:], made[:]
    while True:
        for thread, ops in enumerate(calls):
            while (
                at[thread] < len(ops) and not shared[thread][at[thread]] and not _stands(ops[at[thread]], made, blocked)
            ):
                made.append(ops[at[thread]])
                at[thread] += 1
        ready = [thread for thread, ops in enumerate(calls) if at[thread] < len(ops)]
        moving = [thread for thread in ready if not _stands(calls[thread][at[thread]], made, blocked)]
        if len(moving) != 1 or moving[0] in asleep:
            break
        only = moving[0]
        mine = uses[only][at[only]]
        asleep = {other: one for other, one in asleep.items() if not _depend(one, mine)}
        made.append(calls[only][at[only]])
        at[only] += 1
    if not moving:  # done, or all that are left stand
        yield [*made, *(op for thread in ready for op in calls[thread][at[thread] :])]
    tried: dict[int, Uses] = dict(asleep)
    for thread in moving:
        if thread in asleep:
            continue
        mine = uses[thread][at[thread]]
        sleeping = {other: one for other, one in tried.items() if other != thread and not _depend(one, mine)}
        moved = at[:]
        moved[thread] += 1
        yield from _go_on(calls, uses, shared, moved, [*made, calls[thread][at[thread]]], sleeping, blocked)
        tried[thread] = mine


def _stands(op: Op, made: Sequence[Op], blocked: Blocked) -> bool:
    """Whether a thread cannot make this call: it would receive from an empty mailbox, or is blocked in a call before it."""
    if op.kind == "receives":
        last = next((one.kind for one in reversed(made) if one.mailbox == op.mailbox), "")
        if last != "publishes":
            return True
    return blocked(op.thread, made)


class Blocked:
    """Whether a host thread is blocked in its last call: it synchronises with what, by the calls made so far, cannot run.

    Only where a lane can stand: at an await, or where a thread's calls wait for another thread's.
    """

    def __init__(self, threads: Mapping[str, Sequence[Op]], memories: Memories) -> None:
        calls = [op for ops in threads.values() for op in ops]
        self._stand = any(op.kind == "awaits" for op in calls)
        self._memories = memories

    def __call__(self, thread: str, made: Sequence[Op]) -> bool:
        if not self._stand:
            return False
        last = next((one for one in reversed(made) if one.thread == thread), None)
        if last is None or last.kind not in ("syncs", "polls"):
            return False
        trace = Trace(self._memories)
        try:
            for op in made:
                trace.call(op)
        except Refused:
            return False  # found where the trace is judged
        trace.finish()
        return any(trace.steps[one].lane == thread for one in standing(trace.steps))


def _uses(op: Op, awaits: bool = False) -> Uses:
    """awaits: a lane can stand while later calls go on, so that which of two accesses was called first counts by itself."""
    changes: set[str] = set()
    looks: set[str] = set()
    if op.lane not in ("host", ""):
        changes.add(f"lane {op.lane}")
    if op.other:
        looks.add(f"lane {op.other}")
    for inner in (op, *op.steps):
        if inner.kind == "records":
            changes.add(f"event {inner.event}")
        elif inner.event:
            looks.add(f"event {inner.event}")
        names = {one.memory for one in inner.reaches} | {inner.memory, inner.other} - {""}
        for one in inner.reaches:
            looks.add(f"memory {one.memory}")
            if one.verb in ("donates", "allocates") or (awaits and one.verb == "writes"):
                changes.add(f"memory {one.memory}")
        if inner.kind in ("frees", "keeps", "views", "drops", "allocates"):
            changes.update(f"memory {name}" for name in names)
    if op.mailbox:
        changes.add(f"mailbox {op.mailbox}")
    return frozenset(changes), frozenset(looks)


def _depend(one: Uses, other: Uses) -> bool:
    (changes, looks), (others, seen) = one, other
    return not (changes.isdisjoint(others) and changes.isdisjoint(seen) and looks.isdisjoint(others))


def dependent(one: Op, other: Op) -> bool:
    """Whether the order of two calls of different threads can make a difference."""
    return _depend(_uses(one), _uses(other))
