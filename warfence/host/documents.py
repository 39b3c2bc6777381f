"""JSON documents that are read back: each has a type, and what does not fit is refused with file, field, and what is allowed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from warfence.core.errors import InputError
from warfence.host.files import read_input

T = TypeVar("T")
NO_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # the second of msgspec before 0.23
LONGEST = 60  # characters of a wrong value that are shown
_WORDS = {
    "int": "an integer", "float": "a number", "str": "a text", "bool": "true or false", "array": "a list",
    "object": "an object", "null": "null",
}  # fmt: skip
_PROBLEM = re.compile(r"(?P<said>.*?)(?: - at (?P<key>`key` in )?`\$\.?(?P<field>[^`]*)`)?", re.DOTALL)


def read_document(path: Path, kind: type[T], what: str, remedy: str, name: str = "") -> T:
    """The document in the file. what: as which it was given, "a document of `warfence bench`". name: of the file, in messages.

    InputError, which ends in the remedy: it cannot be read, it is no JSON, or a field is not as the type says.
    """
    name = name or f"'{path}'"
    return decoded(read_input(path, name, remedy), kind, what, remedy, name)


def decoded(raw: bytes, kind: type[T], what: str, remedy: str, name: str) -> T:
    """The same of bytes. Fields that the type does not have are passed over: a later version may write more."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except NO_JSON as wrong:
        try:
            found = msgspec.json.decode(raw)
        except NO_JSON as cause:  # only now: a wrong type may stand before what is no JSON
            said = str(cause).removeprefix("JSON is malformed: ")
            raise InputError(f"{name} is no JSON ({said}); {remedy}") from cause
        raise InputError(f"{name} is no {what}: {refusal(str(wrong), found)}; {remedy}") from wrong


def read_object(path: Path, remedy: str) -> dict[str, Any]:
    """A JSON object of somebody else, whose fields are looked at one by one. InputError, which ends in the remedy."""
    return read_document(path, dict[str, Any], "JSON object", remedy)


def plain(document: Any) -> Any:
    """The document as dicts, lists, texts and numbers, in the order of its fields."""
    return msgspec.to_builtins(document, str_keys=True)


def refusal(problem: str, document: Any) -> str:
    """What msgspec says, as a clause: which field, what is there, and what is allowed."""
    found = _PROBLEM.fullmatch(problem)
    said, key, field = (found["said"], found["key"], found["field"]) if found else (problem, None, None)
    where = f"a key of {field}" if key else (field or "it")
    if said.startswith("Object missing required field"):
        return f"{where} has no '{said.split('`')[1]}'"
    if said.startswith("Invalid"):
        return f"{where} is {_seen(document, field or '')}, which there is not"
    expected, _, got = said.partition(", got ")
    allowed = re.sub(r"`([^`]*)`", lambda match: _words(match[1]), expected.removeprefix("Expected "))
    seen = ("" if key else _seen(document, field or "")) or _words(got.strip("`"))
    return f"{where} is {seen or 'something else'}; allowed is {allowed.replace('>=', 'from')}"


def _words(types: str) -> str:
    return " or ".join(_WORDS.get(one, one) for one in types.split(" | "))


def _seen(found: Any, field: str) -> str:
    """What stands there; empty where the path does not lead to it alone."""
    for name, number in re.findall(r"([^.\[\]]+)(?![^\[]*\])|\[([^\]]*)\]", field):
        if name:
            found = found[name]
        elif number.isdecimal():
            found = found[int(number)]
        else:
            return ""  # "[...]": of some entry of an object
    shown = repr(found)
    return shown if len(shown) <= LONGEST else ""
