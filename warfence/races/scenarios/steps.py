"""Host calls in one order, as steps and what each step is behind: the partial order that this order of calls permits.

A step runs on a lane, or on a host thread (accesses, synchronisation, mailboxes). It is behind: the step before it on its
lane; the last step of the host thread that called it; and whatever a wait, a mailbox or the handle of an array brings.
A wait binds to the record that its event holds at the call; without one it orders nothing. An await binds to a record
by number, wherever that is called. A launch is one executable, or several where it `cuts`: an executable holds the arrays that
it touches from its first to its last step, and a donation waits for all holders of the handle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from warfence.races.scenarios.operations import Memories, Op, Path, Reach
from warfence.races.scenarios.program import HOST


@dataclass(frozen=True, slots=True)
class Step:
    """One step that a lane or a host thread executes. Its id is its place in the order of the calls.

    kind: access (also allocations and donations), records, waits, awaits, syncs, polls, takes, publishes, clears, receives.
    call: the place of its call in `Trace.ops`. after: ids that it is directly behind. joins: those of them that a wait,
    a mailbox or a handle brought. event, other: what a wait is for; of a take, what the mailbox held.
    """

    id: int
    lane: str
    thread: str
    kind: str
    path: Path
    line: int
    call: int
    reaches: tuple[Reach, ...] = ()
    after: tuple[int, ...] = ()
    joins: tuple[int, ...] = ()
    launch: int = 0
    stage: str = ""
    event: str = ""
    other: str = ""
    mailbox: str = ""
    number: int = 0
    needs: int = 0  # of an await the record's number; 1 where a thread receives what never comes

    @property
    def touches(self) -> bool:
        """Whether it reads or writes memory. An allocation does neither: it only hands a block out."""
        return any(one.verb != "allocates" for one in self.reaches)

    @property
    def title(self) -> str:
        """The step as a short phrase."""
        if self.kind == "access":
            what = ", ".join(f"{one.verb} {one.cells}" for one in self.reaches)
            return f"{self.stage}: {what}" if self.stage else what
        if self.kind == "takes":
            held = self.event or (f"empty, so lane {self.other}" if self.other else "empty")
            return f"takes {self.mailbox} ({held})"
        if self.kind in ("publishes", "clears", "receives"):
            return f"{self.kind} {f'{self.event} to ' if self.event else ''}{self.mailbox}"
        what = self.event or f"lane {self.other}"
        return f"{self.kind} {what}" + (f" record {self.needs}" if self.needs else "")


class Refused(Exception):
    """A call that the runtime refuses aloud."""

    def __init__(self, op: Op, reason: str) -> None:
        self.op, self.reason = op, reason
        super().__init__(f"line {op.line}: {reason}")


class _Array:
    """One version of an array: its memory, the donation that defined it, and the last steps of those that hold it."""

    def __init__(self, memory: str, defined: int | None = None) -> None:
        self.memory, self.defined, self.alive = memory, defined, True
        self.holders: list[int] = []


class Trace:
    """What one order of calls leads to. `call` takes them one after the other; `finish` binds the awaits."""

    def __init__(self, memories: Memories) -> None:
        self.steps: list[Step] = []
        self.ops: list[Op] = []  # the calls, in this order
        self.unbound: list[int] = []  # waits for an event that nothing had recorded, and awaits of no record
        self.copies: list[int] = []  # donations that a view made into copies
        self.memories = memories
        self._last: dict[str, int] = {}  # the last step of each lane and thread
        self._events: dict[str, list[int]] = {}
        self._mailboxes: dict[str, tuple[str, int]] = {}  # the ticket's event, and the step that published it
        self._blocks: dict[str, str] = {}
        self._freed: dict[str, str] = {}
        self._made = 0
        self._arrays = {name: _Array(name) for name in memories.arrays}
        self._views: dict[str, _Array] = {}

    def call(self, op: Op) -> None:
        """The host calls this. Refused when the runtime would say so aloud."""
        self.ops.append(op)
        match op.kind:
            case "access" | "allocates":
                self._executable(op, [op], 0)
            case "launch":
                for part in _executables(op):
                    self._executable(op, part, op.launch)
            case "records":
                self._record(op, op, 0)
            case "waits" | "syncs" | "polls":
                self._wait(op, op.event, op.other)
            case "awaits":
                self._step(op, event=op.event, needs=op.number)
            case "publishes" | "takes" | "clears" | "receives":
                self._mailbox(op)
            case _:
                self._memory(op)

    def finish(self) -> None:
        """Every call was made: bind the awaits."""
        for step in self.steps:
            if step.needs:
                records = self._events.get(step.event, [])
                if step.needs <= len(records):
                    record = records[step.needs - 1]
                    self.steps[step.id] = replace(step, after=(*step.after, record), joins=(record,))
                elif step.kind == "awaits":
                    self.unbound.append(step.id)

    def _executable(self, op: Op, part: Sequence[Op], launch: int) -> None:
        """One operation, or what lies between two cuts of a launch: it holds its arrays from its first to its last step."""
        names = {one.memory for inner in part for one in inner.reaches} & self._arrays.keys()
        held = {name: self._alive(op, name) for name in names}
        joins = [array.defined for array in held.values() if array.defined is not None]
        for inner in part:
            if inner.kind == "records":
                self._record(op, inner, launch, joins)
            else:
                self._access(op, inner, launch, joins)
            joins = []
        last = len(self.steps) - 1
        for name, old in held.items():
            array = self._arrays[name]
            array.holders.append(last)
            if array is not old:
                array.defined = last  # a donation's result is there when its executable is done

    def _access(self, op: Op, inner: Op, launch: int, joins: list[int]) -> None:
        reaches: list[Reach] = []
        for one in inner.reaches:
            if one.verb == "donates":
                joins = joins + self._donate(op, one, reaches)
            elif one.memory in self._arrays:
                reaches.append(replace(one, memory=self._arrays[one.memory].memory))
            elif one.verb == "allocates":
                reaches.append(replace(one, memory=self._allocate(op)))
            else:
                reaches.append(replace(one, memory=self._block(op, one.memory)))
        self._step(op, inner, joins, launch=launch, kind="access", reaches=tuple(reaches), stage=inner.stage)

    def _donate(self, op: Op, reach: Reach, reaches: list[Reach]) -> list[int]:
        """The write of a donation, in place, or, with a live view of the array, into a copy. Returns what it waits for."""
        old = self._alive(op, reach.memory)
        number = len(self.steps)
        if any(view is old for view in self._views.values()):
            self._made += 1
            new = _Array(f"{old.memory}, copy {self._made}", number)
            size = self.memories.size[reach.memory]
            reaches += [Reach("reads", old.memory, 0, size), Reach("writes", new.memory, 0, size)]
            self.copies.append(number)
            waited = [] if old.defined is None else [old.defined]
        else:
            new = _Array(old.memory, number)
            reaches.append(replace(reach, memory=old.memory))
            waited = [*old.holders, *([] if old.defined is None else [old.defined])]
            old.alive = False
        self._arrays[reach.memory] = new
        return waited

    def _alive(self, op: Op, name: str) -> _Array:
        array = self._arrays[name]
        if not array.alive:
            raise Refused(op, f"the handle '{name}' was donated before; it is dead")
        return array

    def _allocate(self, op: Op) -> str:
        name = op.reaches[0].memory
        if op.memory:
            if op.memory not in self._freed:
                raise Refused(op, f"the block '{op.memory}' is in use; free it before it is handed out again")
            memory = self._freed.pop(op.memory)
            del self._blocks[op.memory]
        elif name in self._blocks:
            self._made += 1
            memory = f"{name}, block {self._made}"
        else:
            memory = name
        self._blocks[name] = memory
        self._freed.pop(name, None)
        return memory

    def _block(self, op: Op, name: str) -> str:
        if name in self._freed or (name not in self.memories.kind and name not in self._blocks):
            raise Refused(op, f"the block '{name}' is used after its owner let go of it")
        return self._blocks.get(name, name)

    def _record(self, op: Op, inner: Op, launch: int, joins: Sequence[int] = ()) -> None:
        records = self._events.setdefault(inner.event, [])
        records.append(len(self.steps))
        self._step(op, inner, joins, launch=launch, event=inner.event, number=len(records))

    def _wait(self, op: Op, event: str, other: str) -> None:
        if other:
            joins = [self._last[other]] if other in self._last else []
        else:
            joins = self._events.get(event, [])[-1:]
            if event and not joins:
                self.unbound.append(len(self.steps))
        self._step(op, op, joins, event=event, other=other, launch=op.launch, mailbox=op.mailbox)

    def _mailbox(self, op: Op) -> None:
        held = self._mailboxes.get(op.mailbox)
        if op.kind == "publishes":
            if held:
                raise Refused(op, f"mailbox '{op.mailbox}' holds {held[0]} still; take or clear it before {op.event}")
            self._mailboxes[op.mailbox] = (op.event, len(self.steps))
            self._step(op, event=op.event, mailbox=op.mailbox)
            return
        self._mailboxes.pop(op.mailbox, None)
        if op.kind == "clears":
            self._step(op, mailbox=op.mailbox)
            return
        if op.kind == "receives":  # with nothing to come the thread stands, as at an await of no record
            self._step(op, joins=[held[1]] if held else [], mailbox=op.mailbox, needs=0 if held else 1)
            return
        if held and op.thread != self.steps[held[1]].lane:
            self._step(replace(op, lane=HOST, kind="clears"), joins=[held[1]], mailbox=op.mailbox)
        self._wait(op, held[0] if held else "", "" if held else op.other)

    def _memory(self, op: Op) -> None:
        """Calls that only change what names mean."""
        if op.kind == "frees":
            self._freed[op.memory] = self._block(op, op.memory)
        elif op.kind == "keeps":
            self._arrays[op.other] = self._alive(op, op.memory)
        elif op.kind == "views":
            self._views[op.memory] = self._alive(op, op.memory)
        else:
            self._views.pop(op.memory, None)

    def _step(self, op: Op, inner: Op | None = None, joins: Sequence[int] = (), **fields: object) -> None:
        inner = inner or op
        lane = op.thread if op.lane == HOST else op.lane
        before = {self._last[name] for name in (lane, op.thread) if name in self._last}
        step = Step(
            len(self.steps), lane, op.thread, inner.kind, inner.path, inner.line, len(self.ops) - 1,
            after=tuple(sorted({*before, *joins})), joins=tuple(joins),
        )  # fmt: skip
        self.steps.append(replace(step, **fields))  # type: ignore[arg-type]
        self._last[lane] = step.id


def _executables(op: Op) -> list[list[Op]]:
    parts: list[list[Op]] = [[]]
    for step in op.steps:
        if step.kind == "cuts":
            parts.append([])
        else:
            parts[-1].append(step)
    return [part for part in parts if part]
