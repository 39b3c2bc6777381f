"""What of a trace calls of the neutral interface can say, and as what: lanes by their part in it, tables, batches.

The lane that reads runs the forwards; each other one only writes tables, from pinned memory or not. What the forward lane
alone touches is private state of forwards. Pinned memory that a forward reads is a batch, in use until its launch is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warfence.core.backend import FORWARD, PLAN, SCHEDULE
from warfence.races.replay.parts import donates, parts_of
from warfence.races.scenarios.operations import Memories, Reach
from warfence.races.scenarios.program import HOST
from warfence.races.scenarios.steps import Step, Trace

TABLES, CELLS = ("t0", "t1", "t2", "t3"), 128  # what a player has for any trace
ONE_READER = "state of forwards (KV, relay) is private to the forward lane; no call lets another lane read or write it"
FEW_LANES = f"the interface has three lanes: {SCHEDULE}, {FORWARD}, {PLAN}"
DONATES = "handles and donation are of one framework; its own watch judges them"
BLOCKS = "the interface has no allocation on a lane"
PARTS = "a stage declares tables, and a launch takes a batch, not parts of them"
ONE_MARKER = "a captured forward has one marker, behind a stage"
BATCH = "a batch is in use until its launch is over, and a launch has one"
VALUES = "the arrays of a table write are the caller's promise; nothing tells when they change"
RESULTS = "a forward writes no memory of the host but its outputs"
Range = tuple[str, int, int]  # memory, begin, end


@dataclass
class Layout:
    """lanes: scenario's name -> the interface's. tables: cells that are touched together -> a table. batches: likewise.

    lacks: why the trace cannot be said; empty when it can.
    """

    lanes: dict[str, str] = field(default_factory=dict)
    tables: dict[Range, str] = field(default_factory=dict)
    batches: set[Range] = field(default_factory=set)
    lacks: str = ""

    def table(self, one: Reach) -> tuple[str, int] | None:
        """(table, first cell in it) of a reach; None: private to forwards, or memory of the host."""
        whole = next((at for at in self.tables if _inside(one, at)), None)
        return None if whole is None else (self.tables[whole], one.begin - whole[1])

    def batch(self, one: Reach) -> Range | None:
        """The batch that a reach is of."""
        return next((at for at in self.batches if _inside(one, at)), None)


def layout_of(trace: Trace, memories: Memories) -> Layout:
    """How a trace is said in calls of the interface."""
    if donates(trace):
        return Layout(lacks=DONATES)
    if any((op.kind == "allocates" and op.lane != HOST) or op.kind == "frees" for op in trace.ops):
        return Layout(lacks=BLOCKS)
    made = Layout(_lanes(trace, memories))
    names = list(made.lanes.values())
    if names.count(FORWARD) > 1:
        made.lacks = ONE_READER
    elif "" in names:
        made.lacks = FEW_LANES
    else:
        made.lacks = _memories(trace, memories, made) or _launches(trace, made)
    return made


def _lanes(trace: Trace, memories: Memories) -> dict[str, str]:
    """Every lane's part; empty: none is left."""
    reads = {op.lane for op in trace.ops if op.kind == "launch"}
    for step in trace.steps:
        pinned = {one.memory for one in step.reaches if _pinned(one, memories)} if _writes(step, memories) else set()
        if step.lane != step.thread and any(one.verb == "reads" and one.memory not in pinned for one in step.reaches):
            reads.add(step.lane)
    named = [op.lane for op in trace.ops] + [op.other for op in trace.ops if op.kind in ("waits", "syncs", "takes")]
    others = [lane for lane in dict.fromkeys(named) if lane not in ("", HOST) and lane not in reads]
    if not reads and FORWARD in others:
        reads = {FORWARD}
        others.remove(FORWARD)
    found = dict.fromkeys(reads, FORWARD)
    found |= {lane: lane for lane in others if lane in (SCHEDULE, PLAN)}
    for lane in others:
        free = [name for name in (SCHEDULE, PLAN) if name not in found.values()]
        found.setdefault(lane, free[0] if free else "")
    return found


def _memories(trace: Trace, memories: Memories, made: Layout) -> str:
    by_memory: dict[str, list[tuple[str, Reach]]] = {}
    for lane, one in _reaches(trace):
        by_memory.setdefault(one.memory, []).append((HOST if lane == HOST else made.lanes[lane], one))
    for name, touched in by_memory.items():
        pinned = _pinned(touched[0][1], memories)
        others = {lane for lane, _ in touched} - {FORWARD}
        if pinned and any(lane != HOST and one.verb == "writes" for lane, one in touched):
            return RESULTS
        if pinned and others - {HOST}:  # a table write takes its values from there
            taken = next(at for at, (lane, _) in enumerate(touched) if lane not in (HOST, FORWARD))
            if any(one.verb == "writes" for _, one in touched[taken:]) or any(lane == FORWARD for lane, _ in touched):
                return VALUES
        if not others or (pinned and others - {HOST}):
            continue
        if not pinned and any(lane == FORWARD and one.verb == "writes" for lane, one in touched):
            return ONE_READER
        for at, together in _groups(name, touched):
            reads = [one for lane, one in together if lane == FORWARD]
            writes = [one for lane, one in together if lane != FORWARD and one.verb == "writes"]
            if any(read.end <= write.begin or write.end <= read.begin for read in reads for write in writes):
                return PARTS
            if pinned:
                made.batches.add(at)
            elif len(made.tables) == len(TABLES) or at[2] - at[1] > CELLS:
                return f"a player has {len(TABLES)} tables of {CELLS} cells"
            else:
                made.tables[at] = TABLES[len(made.tables)]
    return ""


def _launches(trace: Trace, made: Layout) -> str:
    for call, executables in enumerate(parts_of(trace)):
        parts = [part for executable in executables for part in executable if trace.ops[call].lane != HOST]
        records = [at for at, part in enumerate(parts) if part.op.kind == "records"]
        batches = {made.batch(one) for part in parts for one in part.reaches} - {None}
        if len(records) > 1 or records[:1] == [0]:
            return ONE_MARKER
        if len(batches) > 1 or (batches and records):
            return BATCH
    return ""


def _reaches(trace: Trace) -> Iterator[tuple[str, Reach]]:
    """(lane, or `host`; an access) of every step."""
    for step in trace.steps:
        for one in step.reaches:
            yield (HOST if step.lane == step.thread else step.lane), one


def _pinned(one: Reach, memories: Memories) -> bool:
    """What the host allocates is pinned, too."""
    return memories.kind.get(one.memory.partition(",")[0], "pinned") == "pinned"


def _writes(step: Step, memories: Memories) -> bool:
    return any(one.verb == "writes" and not _pinned(one, memories) for one in step.reaches)


def _groups(name: str, touched: list[tuple[str, Reach]]) -> Iterator[tuple[Range, list[tuple[str, Reach]]]]:
    """The accesses of one memory; where some of them are beside each other, those that touch no cell of another apart."""
    if any(lane in (FORWARD, HOST) for lane, _ in touched):
        yield from _components(name, touched)
    else:
        yield (name, min(one.begin for _, one in touched), max(one.end for _, one in touched)), touched


def _components(name: str, touched: list[tuple[str, Reach]]) -> Iterator[tuple[Range, list[tuple[str, Reach]]]]:
    """The accesses of one memory, as groups that touch no cell of each other."""
    group: list[tuple[str, Reach]] = []
    end = 0
    for lane, one in sorted(touched, key=lambda pair: pair[1].begin):
        if group and one.begin >= end:
            yield (name, group[0][1].begin, end), group
            group = []
        group.append((lane, one))
        end = max(end, one.end) if len(group) > 1 else one.end
    yield (name, group[0][1].begin, end), group


def _inside(one: Reach, at: Range) -> bool:
    return one.memory == at[0] and at[1] <= one.begin and one.end <= at[2]
