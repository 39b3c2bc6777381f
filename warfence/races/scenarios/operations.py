"""A scenario with its parameters, as flat lists of host calls, one list a host thread; one for each way to choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warfence.core.errors import InputError
from warfence.races.scenarios.expression import Expression
from warfence.races.scenarios.program import (
    HOST,
    Access,
    Call,
    Cells,
    Choose,
    Declare,
    LaunchBlock,
    Ref,
    Remark,
    Repeat,
    Scenario,
    Statement,
    Thread,
    Touch,
)

LONGEST = 100_000  # calls of one variant
Path = tuple[int, ...]
Threads = dict[str, list["Op"]]


@dataclass(frozen=True, slots=True)
class Reach:
    """One access with numbers: verb (reads, writes, donates, allocates), cells [begin, end) of a memory.

    launch: the launch whose write a read has to see; 0: the last one called.
    """

    verb: str
    memory: str
    begin: int
    end: int
    launch: int = 0

    @property
    def cells(self) -> str:
        inner = str(self.begin) if self.end == self.begin + 1 else f"{self.begin}:{self.end}"
        return f"{self.memory}[{inner}]"


@dataclass(frozen=True, slots=True)
class Op:
    """One call of the host. kind: access, launch, or the verb of its sentence.

    thread: who calls. lane: the lane it is for, or `host`. path: its statement, as places in the nested bodies.
    launch: of a launch its number, of a wait the launch that it is meant for. number: the record that an await is for.
    other: the lane waited for, or the new name of a kept array. reaches: of an access, and of an allocation the block.
    steps: what a launch runs, in order, with kinds access, records and cuts.
    """

    thread: str
    lane: str
    kind: str
    path: Path
    line: int
    reaches: tuple[Reach, ...] = ()
    stage: str = ""
    event: str = ""
    other: str = ""
    mailbox: str = ""
    launch: int = 0
    number: int = 0
    memory: str = ""
    steps: tuple[Op, ...] = ()


@dataclass(frozen=True, slots=True)
class Memories:
    """What the declarations say. size: cells of each memory. kind: table, pinned or array; blocks are made by calls.

    arrays: those that exist from the start. alias: name -> (memory, first cell).
    """

    size: dict[str, int]
    kind: dict[str, str]
    arrays: list[str]
    alias: dict[str, tuple[str, int]]


class Unroller:
    """One pass through the scenario, which takes these branches of its choices, and the first ones of all others.

    taken and ways: which branch each choice took, and of how many; branches: its calls.
    """

    def __init__(self, scenario: Scenario, values: Mapping[str, int], decisions: Sequence[int] = ()) -> None:
        self._scenario, self._values, self._decisions = scenario, values, decisions
        self.taken: list[int] = []
        self.ways: list[int] = []
        self.branches: list[list[Op]] = []
        self._turns = 0
        self.threads: Threads = {HOST: []}
        self.memories = Memories({}, {}, [], {})
        self._env: dict[str, int] = {}
        self._families: dict[str, int] = {}
        self._thread = HOST
        self._line = 0
        known = [one.name for part in scenario.body if isinstance(part, Declare) and part.kind == "param"
                 for one in part.items]  # fmt: skip
        for name in values:
            if name not in known:
                raise InputError(
                    f"scenario '{scenario.id}' has no parameter '{name}'; it has: {', '.join(known) or 'none'}"
                )
        self._run(scenario.body, (), self.threads[HOST])

    def _run(self, body: Sequence[Statement], path: Path, out: list[Op]) -> None:
        for place, one in enumerate(body):
            here = (*path, place)
            if isinstance(one, Remark):
                continue
            self._line = one.line
            match one:
                case Declare():
                    self._declare(one)
                case Access():
                    self._add(out, self._access(one, here))
                case Call():
                    self._add(out, self._call(one, here))
                case LaunchBlock(number, lane, steps):
                    inner: list[Op] = []
                    launch = self._number(number)
                    self._run(steps, here, inner)
                    self._add(out, Op(self._thread, lane, "launch", here, one.line, launch=launch, steps=tuple(inner)))
                case Repeat(name, first, last, inside):
                    turns = range(self._number(first), self._number(last) + 1)
                    self._turns += len(turns)
                    if self._turns > LONGEST:
                        raise self._wrong(
                            f"{self._turns} turns of loops, and at most {LONGEST} are; take smaller parameters"
                        )
                    for turn in turns:
                        self._env[name] = turn
                        self._run(inside, here, out)
                    self._env.pop(name, None)
                case Choose(branches):
                    at = len(self.taken)
                    branch = self._decisions[at] if at < len(self._decisions) else 0
                    self.taken.append(branch)
                    self.ways.append(len(branches))
                    begin = len(out)
                    self._run(branches[branch], (*here, branch), out)
                    self.branches.append(out[begin:])
                case Thread(name, inside):
                    self._thread, self.threads[name] = name, []
                    self._run(inside, here, self.threads[name])
                    self._thread = HOST

    def _add(self, out: list[Op], op: Op) -> None:
        if len(out) >= LONGEST:
            raise self._wrong(f"more than {LONGEST} calls; take smaller parameters")
        out.append(op)

    def _declare(self, declare: Declare) -> None:
        for one in declare.items:
            if declare.kind == "param" and one.size:
                self._env[one.name] = self._values.get(one.name, self._number(one.size))
            elif declare.kind == "event":
                self._families[one.name] = self._number(one.size) if one.size else 0
            elif one.of:
                reach = self._reach(Touch("reads", one.of))
                self.memories.alias[one.name] = (reach.memory, reach.begin)
                self.memories.size[one.name] = reach.end - reach.begin
            elif one.size:
                self.memories.size[one.name] = self._number(one.size)
                self.memories.kind[one.name] = declare.kind
                if declare.kind == "array":
                    self.memories.arrays.append(one.name)

    def _access(self, access: Access, path: Path) -> Op:
        reaches = tuple(map(self._reach, access.touches))
        for one in reaches:
            kind = self.memories.kind.get(one.memory, "block")
            if access.subject == HOST and kind in ("table", "array"):
                raise self._wrong(f"the host touches '{one.memory}', memory of the device; declare it `pinned`")
            if one.verb != "reads" and (one.verb == "donates") != (kind == "array"):
                right = "donates" if kind == "array" else "writes"
                raise self._wrong(f"'{one.memory}' is declared as {kind}, and '{one.verb}' it; write '{right}'")
        return Op(self._thread, access.subject, "access", path, access.line, reaches, access.stage)

    def _call(self, call: Call, path: Path) -> Op:
        reaches: tuple[Reach, ...] = ()
        if call.new and call.new.size:
            size = self.memories.size[call.new.name] = self._number(call.new.size)
            reaches = (Reach("allocates", call.new.name, 0, size),)
        elif call.new:
            self.memories.size[call.new.name] = self.memories.size[call.memory]
            self.memories.kind[call.new.name] = "array"
        number = self._number(call.number) if call.number else 0
        if call.verb == "awaits" and number < 1 and call.event:
            raise self._wrong(f"record {number} of event '{call.event.name}'; records are numbered from 1")
        return Op(
            self._thread, call.subject, call.verb, path, call.line, reaches,
            event=self._event(call.event) if call.event else "",
            other=call.new.name if call.verb == "keeps" and call.new else call.other,
            mailbox=call.mailbox,
            launch=0 if call.verb == "awaits" else number,
            number=number if call.verb == "awaits" else 0,
            memory=call.memory,
        )  # fmt: skip

    def _reach(self, touch: Touch) -> Reach:
        cells: Cells = touch.cells
        size = self.memories.size[cells.table]
        begin = self._number(cells.begin) if cells.begin else 0
        end = self._number(cells.end) if cells.end else begin + 1 if cells.begin else size
        if not 0 <= begin < end <= size:
            raise self._wrong(f"cells [{begin}:{end}] of '{cells.table}', which has cells [0:{size}]")
        memory, first = self.memories.alias.get(cells.table, (cells.table, 0))
        launch = self._number(touch.launch) if touch.launch else 0
        return Reach(touch.verb, memory, begin + first, end + first, launch)

    def _event(self, ref: Ref) -> str:
        if not ref.index:
            return ref.name
        index, size = self._number(ref.index), self._families[ref.name]
        if not 0 <= index < size:
            raise self._wrong(f"event {ref.name}[{index}], but there are {ref.name}[0] to {ref.name}[{size - 1}]")
        return f"{ref.name}[{index}]"

    def _number(self, expression: Expression) -> int:
        try:
            return expression.value(self._env)
        except ZeroDivisionError:
            raise self._wrong(f"'{expression}' divides by zero") from None

    def _wrong(self, what: str) -> InputError:
        return InputError(f"scenario '{self._scenario.id}', line {self._line}: {what}")
