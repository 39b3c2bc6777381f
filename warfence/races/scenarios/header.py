"""The header of a scenario file: one field a line, its value up to the end of the line, and an empty line behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from warfence.races.scenarios.program import GROUPS, VERDICTS
from warfence.races.scenarios.words import ScenarioError

FIELDS = ("scenario", "title", "group", "source", "expect", "fixed-by")
ALLOWED = {"group": GROUPS, "expect": VERDICTS}
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def read_header(file: str, lines: Sequence[str], start: int) -> tuple[dict[str, str], int]:
    """(field -> value, place of the line behind the header). All fields but fixed-by have to be there."""
    found: dict[str, str] = {}
    at = start
    while at < len(lines) and (text := lines[at].strip()):
        name, _, value = text.partition(" ")
        value = value.strip()
        column = lines[at].find(value, len(name)) + 1 if value else len(text) + 1
        left = [one for one in FIELDS if one not in found]
        if name not in left:
            raise _wrong(file, at, 1, f"a field ({', '.join(left)})", name, left)
        if not value:
            raise ScenarioError(file, at + 1, column, f"expected the text of '{name}', found the end of the line")
        if name in ALLOWED and value not in ALLOWED[name]:
            raise _wrong(file, at, column, f"a {name} ({', '.join(ALLOWED[name])})", value, ALLOWED[name])
        if name in ("scenario", "fixed-by") and not _ID.fullmatch(value):
            raise _wrong(file, at, column, "an id of small letters, digits and hyphens", value, ())
        found[name] = value
        at += 1
    for name in FIELDS[:-1]:
        if name not in found:
            raise ScenarioError(file, at + 1, 1, f"expected the field '{name}', found the end of the header")
    return found, at


def _wrong(file: str, at: int, column: int, expected: str, seen: str, near: Sequence[str]) -> ScenarioError:
    close = get_close_matches(seen, near, 1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    return ScenarioError(file, at + 1, column, f"expected {expected}, found '{seen}'{hint}")
