"""Skips and expected failures, as an implementer keeps them: text files, one id a line, and `# why` after it.

An id is the name of a cell or of a law; `*` and `?` stand for any characters and any one. What is skipped does not run.
What is expected to fail runs, and fails the suite when it passes: then the line is to be deleted.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from warfence.core.errors import InputError
from warfence.host.files import MOST_TEXT, read_input

NO_REASON = "no reason given"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file: the ids that it is about, and why."""

    pattern: str
    reason: str
    where: str

    def matches(self, id: str) -> bool:
        return fnmatchcase(id, self.pattern)


@dataclass(frozen=True, slots=True)
class Selection:
    """What is not to run, and what is to run and fail."""

    skips: tuple[Line, ...] = ()
    xfails: tuple[Line, ...] = ()

    def skip(self, id: str) -> str | None:
        """Why this id is skipped; None when it is not."""
        return _reason(self.skips, id)

    def xfail(self, id: str) -> str | None:
        """Why this id is expected to fail; None when it is not."""
        return _reason(self.xfails, id)

    def unmatched(self, ids: Iterable[str]) -> list[str]:
        """A sentence for each line that is about none of these ids, with the ids that it may have meant."""
        known = tuple(ids)
        return [
            f"{line.where}: '{line.pattern}' matches nothing{_hint(line.pattern, known)}"
            for line in (*self.skips, *self.xfails)
            if not any(line.matches(id) for id in known)
        ]


def read_selection(skips: Path | None, xfails: Path | None) -> Selection:
    """Read the two files. InputError for one that cannot be read."""
    return Selection(_read(skips), _read(xfails))


def choose(kind: str, wanted: Sequence[str], known: Iterable[str], otherwise: str = "") -> tuple[str, ...]:
    """The known names that are meant: upper case and whatever separates words does not matter. InputError for others."""
    names = {_plain(name): name for name in known}
    for name in wanted:
        if _plain(name) not in names:
            near = [names[n] for n in difflib.get_close_matches(_plain(name), names, n=3)]
            hint = f"nearest: {_list(near)}" if near else f"choose one of: {_list(names.values())}"
            raise InputError(f"unknown {kind} '{name}'; {hint}{otherwise}")
    return tuple(dict.fromkeys(names[_plain(name)] for name in wanted))


def _plain(name: str) -> str:
    return re.sub(r"[\s,_-]+", " ", name.strip().lower())


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" if " " in name else name for name in names)


def _reason(lines: tuple[Line, ...], id: str) -> str | None:
    return next((line.reason for line in lines if line.matches(id)), None)


def _hint(pattern: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(pattern, known, n=1)
    return f"; nearest: '{near[0]}'" if near else ""


def _read(path: Path | None) -> tuple[Line, ...]:
    if path is None:
        return ()
    try:
        text = read_input(path, f"'{path}'", "give a text file with one id a line", MOST_TEXT).decode("utf-8")
    except UnicodeDecodeError as cause:
        raise InputError(
            f"'{path}' cannot be read (it is not UTF-8 text); give a text file with one id a line"
        ) from cause
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        pattern, _, reason = (part.strip() for part in line.partition("#"))
        if pattern:
            lines.append(Line(pattern, reason or NO_REASON, f"{path.name}, line {number}"))
    return tuple(lines)
