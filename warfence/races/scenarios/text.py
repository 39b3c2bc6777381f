"""From a `Scenario` to its text. What `parse` reads from it is the same scenario, and formatting twice changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warfence.races.scenarios.forms import FORMS, Form, places
from warfence.races.scenarios.program import (
    HOST,
    Access,
    Call,
    Cells,
    Choose,
    Declare,
    Declared,
    LaunchBlock,
    Ref,
    Remark,
    Repeat,
    Scenario,
    Statement,
    Thread,
)

INDENT = "    "


def text(scenario: Scenario) -> str:
    """The whole file."""
    head = {
        "scenario": scenario.id,
        "title": scenario.title,
        "group": scenario.group,
        "source": scenario.source,
        "expect": scenario.expect,
        "fixed-by": scenario.fixed_by,
    }
    lines = [f"# {line}".rstrip() for line in scenario.about]
    lines += [f"{name:<8} {value}" for name, value in head.items() if value]
    return "\n".join([*lines, "", *_body(scenario.body, 0)]) + "\n"


def sentence(statement: Statement) -> str:
    """One statement without its comment; of a block the line that opens it."""
    match statement:
        case Declare(kind, items):
            if kind == "param":
                return f"param {', '.join(f'{one.name} = {one.size}' for one in items)}"
            return f"{kind} {', '.join(map(_declared, items))}"
        case Access(subject, touches, stage):
            accesses = ", ".join(
                f"{one.verb} {_cells(one.cells)}" + (f" of launch {one.launch}" if one.launch else "")
                for one in touches
            )
            return f"{subject} {accesses}".strip() + (f" as {stage}" if stage else "")
        case LaunchBlock(number, lane):
            return f"launch {number} on {lane} {{"
        case Repeat(name, first, last):
            return f"repeat {name} in {first}..{last} {{"
        case Choose():
            return "choose {"
        case Thread(name):
            return f"thread {name} {{"
        case Call():
            return _call(statement)
        case Remark(text):
            return f"# {text}" if text else ""


def _body(body: Sequence[Statement], depth: int) -> Iterator[str]:
    indent = INDENT * depth
    for one in body:
        note = f"  # {one.note}" if not isinstance(one, Remark) and one.note else ""
        yield (indent + sentence(one) + note).rstrip()
        if isinstance(one, Choose):
            for number, branch in enumerate(one.branches):
                if number:
                    yield f"{indent}}} or {{"
                yield from _body(branch, depth + 1)
            yield f"{indent}}}"
        elif isinstance(one, LaunchBlock | Repeat | Thread):
            yield from _body(one.body, depth + 1)
            yield f"{indent}}}"


def _call(call: Call) -> str:
    fields = ("event", "other", "mailbox", "number", "memory", "new")
    filled = {name: value for name in fields if (value := getattr(call, name))}
    for form in FORMS:
        if form.verb == call.verb and form.by_host == (call.subject == HOST):
            for parts in (form.parts, form.parts + form.optional):
                if set(places(parts)) == set(filled):
                    return " ".join([call.subject, call.verb, *_filled(form, parts, filled)]).strip()
    raise ValueError(
        f"no sentence '{call.verb}' of {call.subject or 'a launch'} has just {', '.join(filled) or 'no place'}"
    )


def _filled(form: Form, parts: tuple[str, ...], filled: dict[str, object]) -> Iterator[str]:
    for part in parts:
        value = filled[part.lower()] if part.isupper() else part
        if isinstance(value, Declared):
            yield _declared(value)
        elif isinstance(value, Ref):
            yield f"{value.name}[{value.index}]" if value.index else value.name
        else:
            yield str(value)


def _declared(one: Declared) -> str:
    if one.of:
        return f"{one.name} = {_cells(one.of)}"
    return f"{one.name}[{one.size}]" if one.size else one.name


def _cells(cells: Cells) -> str:
    if not cells.begin:
        return cells.table
    return f"{cells.table}[{cells.begin}:{cells.end}]" if cells.end else f"{cells.table}[{cells.begin}]"
