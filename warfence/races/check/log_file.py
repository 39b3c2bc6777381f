"""Event logs on disk: JSON lines between a header with a version and a last line that says how many events there are.

Each event is one list, in the order of the fields that the header names; what is left out at its end has its default.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warfence.core.errors import InputError
from warfence.host.quiet import no_collection
from warfence.races.check.events import ACCESSES, HOST, KINDS, WAITS, Event

FORMAT, VERSION = "warfence-log", 1
CHUNK = 4096  # lines that the JSON parser takes at once
FIELDS = list(Event._fields)
_DEFAULTS = [Event._field_defaults.get(name) for name in FIELDS]
_NUMBERS = ("launch", "begin", "end", "generation")
_KNOWN = frozenset(KINDS)


@dataclass(frozen=True)
class Log:
    """The events, and what the recorder says that it could not see."""

    events: Sequence[Event]
    unseen: tuple[str, ...] = ()


class LogWriter:
    """A log that is written as it grows, CHUNK events at a time, so that memory is bounded. A context manager.

    Only a log whose writer was closed can be read: its last line counts the events.
    """

    def __init__(self, path: Path, unseen: Sequence[str] = ()) -> None:
        """InputError when the file cannot be written."""
        self.count = 0
        self._waiting: list[Event] = []
        try:
            self._file = path.open("w", encoding="utf-8")
        except OSError as error:
            raise InputError(f"the log {path} cannot be written ({error.strerror}); give a file in a folder") from error
        header = {"format": FORMAT, "version": VERSION, "fields": FIELDS, "unseen": list(unseen)}
        self._file.write(json.dumps(header) + "\n")

    def append(self, event: Event) -> None:
        """Take one event."""
        self._waiting.append(event)
        if len(self._waiting) >= CHUNK:
            self._flush()

    def close(self) -> None:
        """Write what is left, and the count. Safe to call twice."""
        if not self._file.closed:
            self._flush()
            self._file.write(json.dumps({"events": self.count}) + "\n")
            self._file.close()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _flush(self) -> None:
        events, self._waiting = self._waiting, []
        self.count += len(events)
        for event in events:
            length = len(event)
            while event[length - 1] == _DEFAULTS[length - 1]:
                length -= 1
            self._file.write(json.dumps(event[:length]) + "\n")


def write_log(path: Path, events: Iterable[Event], unseen: Sequence[str] = ()) -> None:
    """Write a log that `read_log` takes."""
    with LogWriter(path, unseen) as writer:
        for event in events:
            writer.append(event)


def read_log(path: Path) -> Log:
    """Read and check a whole log. InputError with file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a text file: {error}; give a log that warfence wrote") from error
    lines = text.split("\n")
    unseen = _header(path, lines[0])
    if not text.endswith("\n"):
        raise InputError(f"{path}, line {len(lines)}: cut off within the line; {_AGAIN}")
    lines.pop()
    events: list[Event] = []
    with no_collection():
        for start in range(1, len(lines) - 1, CHUNK):
            for line, fields in enumerate(
                _parse(path, start, lines[start : min(start + CHUNK, len(lines) - 1)]), start
            ):
                events.append(_event(path, line + 1, fields))
    last = _parse(path, len(lines) - 1, lines[-1:])[0] if len(lines) > 1 else None
    if not isinstance(last, dict) or list(last) != ["events"]:
        raise InputError(f"{path}, line {len(lines)}: cut off, the last line does not count the events; {_AGAIN}")
    if last["events"] != len(events):
        raise InputError(f"{path}: {len(events)} events but the last line counts {last['events']}; {_AGAIN}")
    return Log(events, unseen)


_AGAIN = "record the log again, and let the recorder close it"


def _header(path: Path, line: str) -> tuple[str, ...]:
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"{path}, line 1: not the header of a {FORMAT}; give a file that warfence recorded")
    if header.get("version") != VERSION:
        raise InputError(
            f"{path}, line 1: version {header.get('version')!r} of {FORMAT}, this warfence reads version {VERSION}; "
            f"record the log again with this warfence"
        )
    if header.get("fields") != FIELDS:
        raise InputError(f"{path}, line 1: fields {header.get('fields')!r}; version {VERSION} has: {', '.join(FIELDS)}")
    unseen = header.get("unseen", [])
    if not isinstance(unseen, list) or not all(isinstance(one, str) for one in unseen):
        raise InputError(f"{path}, line 1: 'unseen' is {unseen!r}; it is a list of sentences")
    return tuple(unseen)


def _parse(path: Path, start: int, lines: list[str]) -> list[Any]:
    """The JSON values of these lines, all at once; one by one only to find the line that is wrong."""
    try:
        values: list[Any] = json.loads(f"[{','.join(lines)}]")
        if len(values) == len(lines):
            return values
    except ValueError:
        pass
    for number, line in enumerate(lines, start + 1):
        try:
            json.loads(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: not JSON ({error}); {_AGAIN}") from error
    raise InputError(f"{path}, from line {start + 1}: not one JSON value a line; {_AGAIN}")


def _event(path: Path, line: int, values: Any) -> Event:
    if type(values) is not list or not 2 <= len(values) <= len(FIELDS):
        raise InputError(f"{path}, line {line}: not an event; an event is a list of: {', '.join(FIELDS)}")
    event = Event(*values)
    wrong = _wrong(event)
    if wrong:
        raise InputError(f"{path}, line {line}: {wrong}")
    return event


def _wrong(event: Event) -> str:
    """What is wrong with an event, and what would be right. Empty when nothing is."""
    kind, lane, launch, stage, resource, begin, end, name, generation, other, where = event
    if not (type(lane) is type(stage) is type(resource) is type(name) is type(other) is type(where) is str) or not (
        type(launch) is type(begin) is type(end) is type(generation) is int
    ):
        return f"a field has the wrong type; {', '.join(_NUMBERS)} are whole numbers, all others are texts"
    if kind not in _KNOWN:
        return f"unknown kind {kind!r}; kinds: {', '.join(KINDS)}; record the log with this warfence"
    if not lane:
        return f"a {kind} without a lane; name one, '{HOST}' for the host"
    if kind in ACCESSES:
        if not resource or not 0 <= begin < end:
            return f"a {kind} of '{resource}' [{begin}, {end}); name a resource and cells with 0 <= begin < end"
    elif kind == "wait_lane":
        if not other:
            return "a wait_lane without the other lane; name it as 'other'"
    elif kind in WAITS and other and (name or kind != "host_sync"):
        return f"a {kind} for lane '{other}' and event '{name}'; a wait names an event, a host_sync one of the two"
    elif not name and not other:
        return f"a {kind} without an event; name it as 'event'"
    if kind == "await" and (lane == HOST or generation < 1):
        return f"an await on lane '{lane}' for record {generation}; a lane of the device awaits record 1 or a later one"
    if kind == "host_sync" and lane != HOST:
        return f"a host_sync on lane '{lane}'; the host synchronises, its lane is '{HOST}'"
    return ""
