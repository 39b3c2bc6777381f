"""The names that a scenario has declared so far, and the places of a sentence that hold such names."""

from __future__ import annotations

from typing import Any

from warfence.races.scenarios.expression import Expression
from warfence.races.scenarios.forms import BLOCKS, DECLARATIONS, MEMORIES, Form
from warfence.races.scenarios.program import HOST, Cells, Declared, Ref
from warfence.races.scenarios.words import Line

AGAIN = ("block", "array")  # may be made again under their old name


class Names:
    """Every declared name with its kind."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self._families: set[str] = set()

    def of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in kinds]

    def numbers(self) -> list[str]:
        """What an expression may name."""
        return self.of("param", "turn")

    def fresh(self, line: Line, kind: str) -> str:
        """A new name, declared from here on."""
        text = line.next.text
        if text in (HOST, *DECLARATIONS, *BLOCKS, "lane"):
            line.fail("a name that is no word of the language")
        if (old := self.kinds.get(text)) and not (old == kind and kind in AGAIN):
            line.fail(f"a new name (this one is declared as {old})")
        name = line.name(f"the name of the {kind.removesuffix('s')}")
        self.kinds[name] = kind
        return name

    def declared(self, line: Line, kind: str) -> Declared:
        """One item of a declaration."""
        if kind == "param":
            known = self.numbers()
            name = self.fresh(line, kind)
            line.need("=")
            return Declared(name, line.expression(known))
        if kind == "alias":
            memories = self.of(*MEMORIES)
            name = self.fresh(line, kind)
            line.need("=")
            return Declared(name, of=self.cells(line, memories))
        name = self.fresh(line, kind)
        if kind in MEMORIES:
            return Declared(name, self.size(line, "the number of cells"))
        if kind == "event" and line.next.text == "[":
            self._families.add(name)
            return Declared(name, self.size(line, "the number of events"))
        return Declared(name)

    def size(self, line: Line, what: str) -> Expression:
        if not line.take("["):
            line.fail(f"'[' and {what}")
        size = line.expression(self.numbers())
        line.need("]")
        return size

    def cells(self, line: Line, tables: list[str] | None = None) -> Cells:
        table = line.name("a table", self.of(*MEMORIES) if tables is None else tables)
        if not line.take("["):
            return Cells(table)
        begin = line.expression(self.numbers())
        end = line.expression(self.numbers()) if line.take(":") else None
        line.need("]")
        return Cells(table, begin, end)

    def event(self, line: Line) -> Ref:
        name = line.name("an event", self.of("event"))
        return Ref(name, self.size(line, "which of these events") if name in self._families else None)

    def places(self, line: Line, form: Form) -> dict[str, Any]:
        """What stands in the places of a sentence, behind its verb; by the names of the fields of `Call`."""
        found: dict[str, Any] = {}
        for parts in (form.parts, form.optional):
            if parts == form.optional and (not parts or line.next.text != parts[0]):
                break
            for part in parts:
                if part.isupper():
                    found[part.lower()] = self._place(line, form.verb, part)
                else:
                    line.need(part)
        if form.optional and line.next.kind == "name":
            line.fail(f"'{form.optional[0]}' or the end of the line", form.optional[:1])
        line.end()
        return found

    def _place(self, line: Line, verb: str, part: str) -> Any:
        if part == "EVENT":
            return self.event(line)
        if part == "OTHER":
            return line.name("a lane", self.of("lanes"))
        if part == "MAILBOX":
            return line.name("a mailbox", self.of("mailbox"))
        if part == "NUMBER":
            return line.expression(self.numbers())
        kind = "block" if verb in ("frees", "allocates") else "array"
        if part == "NEW":
            return self.declared(line, kind) if kind == "block" else Declared(self.fresh(line, kind))
        return line.name(f"a declared {kind}", self.of(kind))
