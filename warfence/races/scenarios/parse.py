"""From text to a `Scenario`: header, then declarations and sentences, one a line. Errors are `ScenarioError`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warfence.core.errors import InputError
from warfence.host.files import MOST_TEXT, read_input
from warfence.races.scenarios.forms import ACCESSES, BLOCKS, DECLARATIONS, IN_LAUNCH, forms_of
from warfence.races.scenarios.header import read_header
from warfence.races.scenarios.names import Names
from warfence.races.scenarios.program import (
    HOST,
    Access,
    Call,
    Choose,
    Declare,
    LaunchBlock,
    Remark,
    Repeat,
    Scenario,
    Statement,
    Thread,
    Touch,
)
from warfence.races.scenarios.words import Line, ScenarioError


def read(path: Path) -> Scenario:
    """Read and parse a file. InputError when it cannot be read."""
    raw = read_input(path, str(path), "give a .scenario file", MOST_TEXT)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read as a text file: {error}; give a .scenario file") from error
    return parse(text, str(path))


def parse(text: str, file: str = "scenario") -> Scenario:
    """Parse a whole scenario."""
    lines = text.splitlines()
    about: list[str] = []
    while len(about) < len(lines) and lines[len(about)].startswith("#"):
        about.append(lines[len(about)][1:].strip())
    header, at = read_header(file, lines, len(about))
    body = _Parser(file, lines, at).statements()
    return Scenario(
        header["scenario"], header["title"], header["group"], header["source"], header["expect"], body,
        header.get("fixed-by", ""), tuple(about),
    )  # fmt: skip


class _Parser:
    """A cursor over the lines. Blocks are read by the method of their first word."""

    def __init__(self, file: str, lines: Sequence[str], at: int) -> None:
        self._file, self._lines, self._at = file, lines, at
        self._names = Names()

    def statements(self) -> tuple[Statement, ...]:
        return tidy(self._body(None, launch=False))

    def _line(self) -> Line:
        return Line(self._file, self._at + 1, self._lines[self._at])

    def _body(self, opened: Line | None, launch: bool) -> list[Statement]:
        """Statements up to the line that closes the block, or, where none is open, up to the end of the file."""
        body: list[Statement] = []
        while self._at < len(self._lines):
            line = self._line()
            if line.next.text == "}" and opened:
                return body
            self._at += 1
            body.append(self._statement(line, opened is None, launch))
        if opened:
            raise ScenarioError(self._file, opened.number, 1, "expected '}' below this line, found the end of the file")
        return body

    def _statement(self, line: Line, top: bool, launch: bool) -> Statement:
        if line.empty:
            return Remark(line.note)
        word = line.next.text
        if word == "repeat":
            return self._repeat(line, launch)
        if launch:
            return self._sentence(line, "", launch)
        if word in DECLARATIONS and top:
            return self._declare(line)
        if word == "launch":
            return self._launch(line)
        if word == "choose":
            return self._choose(line)
        if word == "thread" and top:
            return self._thread(line)
        subjects = (*self._names.of("lanes"), HOST)
        if word not in subjects:
            others = (*DECLARATIONS, *BLOCKS) if top else [one for one in BLOCKS if one != "thread"]
            line.fail(f"a lane or the host ({', '.join(subjects)}), or {', '.join(others)}", (*subjects, *others))
        return self._sentence(line, line.name("a subject"), launch)

    def _sentence(self, line: Line, subject: str, launch: bool) -> Statement:
        forms = [one for one in forms_of(subject == HOST) if (one.verb in IN_LAUNCH if launch else one.verb != "cuts")]
        accesses = [verb for verb in ACCESSES if subject != HOST or verb != "donates"]
        verbs = tuple(dict.fromkeys((*accesses, *(form.verb for form in forms))))
        verb = line.next.text
        if verb not in verbs:
            line.fail(f"a verb ({', '.join(verbs)})", verbs)
        if verb in ACCESSES:
            return self._access(line, subject, accesses)
        line.take(verb)
        fitting = [form for form in forms if form.verb == verb]
        form = next((one for one in fitting if one.parts and one.parts[0] == line.next.text), fitting[-1])
        return Call(subject, verb, note=line.note, line=line.number, **self._names.places(line, form))

    def _access(self, line: Line, subject: str, verbs: list[str]) -> Access:
        touches = []
        while True:
            verb = line.need(*verbs)
            cells = self._names.cells(line)
            launch = None
            if verb == "reads" and line.take("of"):
                line.need("launch")
                launch = line.expression(self._names.numbers())
            touches.append(Touch(verb, cells, launch))
            if not line.take(","):
                break
        stage = line.name("the stage's name") if line.take("as") else ""
        line.end()
        return Access(subject, tuple(touches), stage, line.note, line.number)

    def _declare(self, line: Line) -> Declare:
        kind = line.need(*DECLARATIONS)
        items = [self._names.declared(line, kind)]
        while line.take(","):
            items.append(self._names.declared(line, kind))
        line.end()
        return Declare(kind, tuple(items), line.note, line.number)

    def _inside(self, line: Line, launch: bool = False) -> tuple[Statement, ...]:
        """The rest of the line that opens a block, the block, and the line that closes it with its comment."""
        self._open(line)
        body = self._body(line, launch)
        closing = self._line()
        closing.need("}")
        closing.end()
        self._at += 1
        return tidy([*body, *_noted(closing)])

    def _open(self, line: Line) -> None:
        line.need("{")
        line.end()

    def _launch(self, line: Line) -> LaunchBlock:
        line.need("launch")
        number = line.expression(self._names.numbers())
        line.need("on")
        lane = line.name("a lane", self._names.of("lanes"))
        return LaunchBlock(number, lane, self._inside(line, launch=True), line.note, line.number)

    def _repeat(self, line: Line, launch: bool) -> Repeat:
        line.need("repeat")
        known = self._names.numbers()
        name = self._names.fresh(line, "turn")
        line.need("in")
        first = line.expression(known)
        line.need("..")
        last = line.expression(known)
        body = self._inside(line, launch)
        del self._names.kinds[name]
        return Repeat(name, first, last, body, line.note, line.number)

    def _choose(self, line: Line) -> Choose:
        line.need("choose")
        self._open(line)
        branches = []
        carried: list[Remark] = []
        while True:
            body = [*carried, *self._body(line, launch=False)]
            closing = self._line()
            closing.need("}")
            self._at += 1
            if not closing.take("or"):
                closing.end()
                branches.append(tidy([*body, *_noted(closing)]))
                return Choose(tuple(branches), line.note, line.number)
            self._open(closing)
            branches.append(tidy(body))
            carried = _noted(closing)

    def _thread(self, line: Line) -> Thread:
        line.need("thread")
        name = self._names.fresh(line, "thread")
        return Thread(name, self._inside(line), line.note, line.number)


def _noted(closing: Line) -> list[Remark]:
    """The comment of a closing line stands as the last line of its block."""
    return [Remark(closing.note)] if closing.note else []


def tidy(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """The body without empty lines at its ends, and never two of them together."""
    kept: list[Statement] = []
    for one in body:
        if one != Remark() or (kept and kept[-1] != Remark()):
            kept.append(one)
    while kept and kept[-1] == Remark():
        kept.pop()
    return tuple(kept)
