"""A second opinion on verdicts: lanes, events, mailboxes and host threads executed step by step, in every possible way.

It shares nothing with the explorer but the flat lists of host calls. A run goes wrong when an access runs while a conflicting
one that was called before it still waits in its lane, and when a read that names a launch sees another value than its own (a
launch writes a cell once). For small programs without arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from warfence.races.scenarios.choices import variants
from warfence.races.scenarios.operations import Op, Reach
from warfence.races.scenarios.program import HOST, Scenario


class Item(NamedTuple):
    """What stands in a lane's queue, or is what a host thread does now. needs, gives: tokens of records and points."""

    stamp: int
    reaches: tuple[Reach, ...] = ()
    needs: str = ""
    gives: str = ""
    launch: int = 0


class State(NamedTuple):
    at: tuple[int, ...]  # next call of each thread
    queues: tuple[tuple[str, tuple[Item, ...]], ...]  # lanes, and each thread's own pending work
    events: tuple[tuple[str, int], ...]  # records called so far
    boxes: tuple[tuple[str, str], ...]
    done: frozenset[str]
    stamp: int
    holds: tuple[tuple[tuple[str, int], int], ...] = ()  # the launch that wrote each cell last
    names: tuple[tuple[str, str], ...] = ()  # blocks by name; none: it was freed


def verdict(scenario: Scenario) -> str:
    """ok, bad, cycle or error, from every execution."""
    found: set[str] = set()
    for threads, _ in variants(scenario):
        calls = list(threads.values())
        names = list(threads)
        todo = [State((0,) * len(calls), (), (), (), frozenset(), 0)]
        seen = set(todo)
        while todo:
            state = todo.pop()
            successors = list(_moves(state, calls, names, found))
            if not successors and (any(queue for _, queue in state.queues) or any(
                at < len(ops) for at, ops in zip(state.at, calls, strict=True)
            )):  # fmt: skip
                found.add("cycle")
            fresh = [one for one in successors if one not in seen]
            seen.update(fresh)
            todo += fresh
    return next(one for one in ("error", "cycle", "bad", "ok") if one in found or one == "ok")


def _moves(state: State, calls: list[list[Op]], names: list[str], found: set[str]) -> Iterator[State]:
    queues = dict(state.queues)
    for lane, queue in state.queues:
        if queue and (not queue[0].needs or queue[0].needs in state.done):
            pending = [one for other in queues.values() for one in other if one.stamp < queue[0].stamp]
            if any(_conflict(queue[0], one) for one in pending):
                found.add("bad")
            holds = dict(state.holds)
            if any(holds.get(cell) != one.launch for one in queue[0].reaches if one.launch for cell in _cells(one)):
                found.add("bad")
            for one in queue[0].reaches:
                if one.verb == "writes":
                    holds |= dict.fromkeys(_cells(one), queue[0].launch)
            done = state.done | {queue[0].gives} if queue[0].gives else state.done
            yield state._replace(queues=_sorted({**queues, lane: queue[1:]}), done=done, holds=_sorted(holds))
    for number, (name, ops) in enumerate(zip(names, calls, strict=True)):
        if state.at[number] < len(ops) and not queues.get(name):
            op = ops[state.at[number]]
            if op.kind == "receives" and op.mailbox not in dict(state.boxes):
                continue
            at = tuple(one + (place == number) for place, one in enumerate(state.at))
            if op.kind == "publishes" and op.mailbox in dict(state.boxes):
                found.add("error")
            if any(not dict(state.names).get(one.memory, "there") for one in op.reaches if op.kind == "access"):
                found.add("error")
                continue
            yield _called(state._replace(at=at), op, name)


def _called(state: State, op: Op, thread: str) -> State:
    queues, events, boxes = dict(state.queues), dict(state.events), dict(state.boxes)
    stamp = state.stamp
    lane = thread if op.lane == HOST else op.lane

    names = dict(state.names)

    def put(where: str, **fields: object) -> None:
        nonlocal stamp
        queues[where] = (*queues.get(where, ()), Item(stamp, **fields))  # type: ignore[arg-type]
        stamp += 1

    def record(event: str) -> None:
        events[event] = events.get(event, 0) + 1
        put(lane, gives=f"{event}/{events[event]}")

    def wait(event: str, other: str) -> None:
        if other:
            put(other, gives=f"point {stamp}")
            put(lane, needs=f"point {stamp - 1}")
        elif event in events:
            put(lane, needs=f"{event}/{events[event]}")

    if op.kind == "launch":
        for step in op.steps:
            if step.kind == "records":
                record(step.event)
            elif step.kind == "access":
                put(lane, reaches=step.reaches, launch=op.launch)
    elif op.kind == "access":
        put(lane, reaches=tuple(replace(one, memory=names.get(one.memory, one.memory)) for one in op.reaches))
    elif op.kind == "allocates":  # nothing is enqueued
        names[op.reaches[0].memory] = names.pop(f"freed {op.memory}", op.reaches[0].memory)
    elif op.kind == "frees":
        names[f"freed {op.memory}"], names[op.memory] = names[op.memory], ""
    elif op.kind == "records":
        record(op.event)
    elif op.kind in ("waits", "syncs", "polls"):
        wait(op.event, op.other)
    elif op.kind == "awaits":
        put(lane, needs=f"{op.event}/{op.number}")
    elif op.kind == "publishes":
        boxes[op.mailbox] = op.event
    else:
        held = boxes.pop(op.mailbox, "")
        if op.kind == "takes":
            wait(held, "" if held else op.other)
    return State(
        state.at, _sorted(queues), _sorted(events), _sorted(boxes), state.done, stamp, state.holds, _sorted(names)
    )


def _sorted(entries: dict) -> tuple:
    return tuple(sorted(entries.items()))


def _cells(one: Reach) -> list[tuple[str, int]]:
    return [(one.memory, cell) for cell in range(one.begin, one.end)]


def _conflict(one: Item, other: Item) -> bool:
    return any(
        a.memory == b.memory
        and a.begin < b.end
        and b.begin < a.end
        and "writes" in (a.verb, b.verb)
        and not (a.launch or b.launch)
        for a in one.reaches
        for b in other.reaches
    )
