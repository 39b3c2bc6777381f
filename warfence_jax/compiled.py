"""Who reads a table, as the compiled module says: its text is a schedule, and this reads it.

`compiled.as_text()` lists the operations that will run, fused, copied and ordered as XLA decided. A use of a table's parameter
that does not come before the word's increment would be a read that the fence knows nothing of; it is found here, by its line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from jax.stages import Compiled

from warfence.core.errors import InputError

VIEWS = ("bitcast", "get-tuple-element", "tuple", "opt-barrier", "optimization-barrier")  # no read: the value itself
_INSTRUCTION = re.compile(r"^\s*(?P<root>ROOT )?%?(?P<name>[\w.\-]+) = (?P<rest>.+)$")
_CALLED = re.compile(
    r"(?:calls|to_apply|body|condition|called_computations|branch_computations)=\{?(?P<names>[^}=\s]+(?:, [^}=\s]+)*)"
)
_HEADER = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) .*\{$")
_COMMENT = re.compile(r"/\*.*?\*/")
_OP_NAME = re.compile(r'op_name="(?P<name>[^"]*)"')


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of a computation. at: its place there. line: its number in the text, from 1."""

    name: str
    op: str
    operands: tuple[str, ...]
    called: tuple[str, ...]
    at: int
    line: int
    text: str
    op_name: str


@dataclass(slots=True)
class Computation:
    """Instructions in the order in which they are scheduled."""

    name: str
    instructions: dict[str, Instruction] = field(default_factory=dict)
    parameters: dict[int, str] = field(default_factory=dict)
    root: str = ""

    def ancestors(self, name: str) -> set[str]:
        """The instruction and all that it depends on, by data or by control."""
        found, todo = set[str](), [name]
        while todo:
            if (one := todo.pop()) not in found and one in self.instructions:
                found.add(one)
                todo += self.instructions[one].operands
        return found


@dataclass(frozen=True, slots=True)
class Use:
    """One instruction that takes a table. op_names: of the operations inside it that do, "jit(f)/stage/gather"."""

    table: int
    instruction: Instruction
    op_names: tuple[str, ...]


class Module:
    """The text of a compiled module, parsed. Parameters are the arguments in their order."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, Computation] = {}
        self.entry = Computation("")
        current: Computation | None = None
        for number, raw in enumerate(text.splitlines(), 1):
            line = _COMMENT.sub("", raw)
            if header := _HEADER.match(line):
                current = self.computations[header["name"]] = Computation(header["name"])
                self.entry = current if header["entry"] else self.entry
            elif current is not None and (made := _INSTRUCTION.match(line)):
                self._add(current, made, number)
            elif line.startswith("}"):
                current = None

    def uses(self, argument: int) -> list[Use]:
        """Every instruction of the entry that takes the argument."""
        return [Use(argument, one, names) for one, names in self._users(self.entry, argument)]

    def writer(self, result: int) -> Instruction:
        """The instruction of the entry that makes a result."""
        return self._made_by(self.entry, result)

    @property
    def tokens(self) -> int:
        """How many parameters of the entry are tokens, which stand before the arguments."""
        made = (self.entry.instructions[name] for name in self.entry.parameters.values())
        return sum(" = token[]" in one.text for one in made)

    def scoped(self, scope: str) -> Instruction | None:
        """The call out of the entry that was traced in a scope."""
        return next((i for i in self.entry.instructions.values() if i.op == "custom-call" and scope in i.op_name), None)

    def behind(self, arguments: Sequence[int], marker: Instruction) -> list[Use]:
        """The uses of these arguments that are scheduled behind an instruction of the entry. None: all is well."""
        return [use for a in arguments for use in self.uses(a) if use.instruction.at > marker.at]

    def late(self, arguments: Sequence[int], result: int) -> list[Use]:
        """The uses of these arguments on which the result does not depend, or that do not come before it. None: all is well."""
        return [Use(a, one, names) for a in arguments for one, names in self._late(self.entry, a, result)]

    # -- inside

    def _late(self, inside: Computation, argument: int, result: int) -> Iterator[tuple[Instruction, tuple[str, ...]]]:
        writer = self._made_by(inside, result)
        before = inside.ancestors(writer.name)
        for one, names in self._users(inside, argument):
            if one is writer and one.op == "call":  # both inside one call: look there
                callee = self.computations[one.called[0]]
                parameter = next(i for i, o in enumerate(one.operands) if o in self._views(inside, argument))
                inner = self._index(inside, result)
                yield from self._late(callee, parameter, inner)
            elif one.name not in before or one.at > writer.at:
                yield one, names

    def _made_by(self, inside: Computation, result: int) -> Instruction:
        root = inside.instructions[inside.root]
        made = inside.instructions[root.operands[result]] if root.op == "tuple" else root
        while made.op in ("get-tuple-element", "bitcast"):
            made = inside.instructions[made.operands[0]]
        return made

    def _index(self, inside: Computation, result: int) -> int:
        """Which result of the call that makes it this result is."""
        root = inside.instructions[inside.root]
        made = inside.instructions[root.operands[result]] if root.op == "tuple" else root
        found = re.search(r"index=(\d+)", made.text) if made.op == "get-tuple-element" else None
        return int(found[1]) if found else result

    def _views(self, inside: Computation, argument: int) -> set[str]:
        """The names under which an argument goes."""
        views = {inside.parameters[argument]} if argument in inside.parameters else set[str]()
        for one in inside.instructions.values():
            if one.op in VIEWS and views.intersection(one.operands):
                views.add(one.name)
        return views

    def _users(self, inside: Computation, argument: int) -> Iterator[tuple[Instruction, tuple[str, ...]]]:
        views = self._views(inside, argument)
        for one in inside.instructions.values():
            if one.name in views or not views.intersection(one.operands):
                continue
            inner = [
                name
                for called in one.called
                if called in self.computations
                for i, operand in enumerate(one.operands)
                if operand in views
                for _, names in self._users(self.computations[called], i)
                for name in names
            ]
            yield one, tuple(dict.fromkeys(inner)) or (one.op_name,)

    def _add(self, current: Computation, made: re.Match[str], number: int) -> None:
        op, inside, behind = _parts(made["rest"])
        called = tuple(n.strip().lstrip("%") for m in _CALLED.finditer(behind) for n in m["names"].split(","))
        op_name = _OP_NAME.search(behind)
        control = re.search(r"control-predecessors=\{([^}]*)\}", behind)
        operands = [] if op in ("parameter", "constant") else _names(inside)
        operands += _names(control[1]) if control else []
        text = made["rest"].partition(", metadata=")[0]
        one = Instruction(
            made["name"], op, tuple(operands), tuple(c for c in called if c), len(current.instructions), number,
            f"%{made['name']} = {text}", op_name["name"] if op_name else "",
        )  # fmt: skip
        current.instructions[one.name] = one
        if op == "parameter":
            current.parameters[int(inside)] = one.name
        if made["root"]:
            current.root = one.name


def refuse_late(
    compiled: Compiled, tables: Sequence[str], result: int, where: str, declared: Collection[str] = ()
) -> None:
    """InputError for a use of the first arguments (`tables`) that does not come before this result. declared: tables that stages
    behind the marker say they read, which is no matter of the compiler: declarations are compared elsewhere."""
    module = Module(compiled.as_text() or "")
    for use in module.late([i for i, name in enumerate(tables) if name not in declared], result):
        raise too_early(
            where, tables[use.table], use, module.writer(result), "Use the marker 'cut', or report this as a bug"
        )


def too_early(where: str, table: str, use: Use, marker: Instruction, remedy: str) -> InputError:
    """The error of a table that is used behind the marker."""
    return InputError(
        f"{where}: the compiled module uses table '{table}' behind the marker, which would be a ticket that is too early. Line "
        f"{use.instruction.line} is `{use.instruction.text[:160]}`, of {', '.join(use.op_names)}; the marker is line "
        f"{marker.line}, `{marker.text[:80]}`. {remedy}"
    )


def stage_of(op_name: str, stages: Collection[str]) -> str | None:
    """The stage in whose scope an operation was traced: "jit(decode)/page_table/gather"."""
    return next((part for part in op_name.split("/") if part in stages), None)


def _parts(rest: str) -> tuple[str, str, str]:
    """The operation, what is in its parentheses, and what follows them. Before it stands a type, which may be a tuple."""
    start = _closing(rest, 0) + 1 if rest.startswith("(") else 0
    found = re.compile(r" ?([a-z][\w\-]*)\(").search(rest, start)
    if found is None:
        return "", "", ""
    end = _closing(rest, found.end() - 1)
    return found[1], rest[found.end() : end], rest[end + 1 :]


def _closing(text: str, at: int) -> int:
    """Where the parenthesis that opens at `at` closes."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i
    return len(text)


def _names(operands: str) -> list[str]:
    """The names among operands, with or without their types."""
    parts, depth, start = list[str](), 0, 0
    for i, letter in enumerate(operands):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(operands[start:i])
            start = i + 1
    return [p.split()[-1].lstrip("%") for p in (*parts, operands[start:]) if p.strip()]
