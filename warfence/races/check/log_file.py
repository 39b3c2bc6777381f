"""Event logs on disk: JSON lines between a header with a version and a last line that says how many events there are.

Each event is one list, in the order of the fields that the header names; what is left out at its end has its default.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from warfence.core.errors import InputError
from warfence.host.documents import NO_JSON
from warfence.host.files import OutputError, check_output, read_input
from warfence.host.quiet import no_collection
from warfence.races.check.events import ACCESSES, HOST, KINDS, STEPS, WAITS, Event

FORMAT: Literal["warfence-log"] = "warfence-log"
VERSION = 1
CHUNK = 4096  # lines that are decoded at once
FIELDS = list(Event._fields)
_DEFAULTS = [Event._field_defaults.get(name) for name in FIELDS]
_NUMBERS = ("launch", "begin", "end", "generation")
_AGAIN = "record the log again, and let the recorder close it"


@dataclass(frozen=True, slots=True)
class Header:
    """The first line."""

    format: Literal["warfence-log"]
    version: int
    fields: Sequence[str] = ()
    unseen: Sequence[str] = ()
    missed: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Footer:
    """The last line: how many events there are."""

    events: int


_ENCODE = msgspec.json.Encoder().encode
_EVENTS, _FOOTER = msgspec.json.Decoder(Event), msgspec.json.Decoder(Footer)


@dataclass(frozen=True)
class Log:
    """The events, what the recorder never sees, and what it missed in this run though it may matter."""

    events: Sequence[Event]
    unseen: Sequence[str] = ()
    missed: Sequence[str] = ()


class LogWriter:
    """A log that is written as it grows, CHUNK events at a time, so that memory is bounded. A context manager.

    Only a log whose writer was closed can be read: its last line counts the events.
    """

    def __init__(self, path: Path, unseen: Sequence[str] = (), missed: Sequence[str] = ()) -> None:
        """InputError when the file cannot be written."""
        self.count = 0
        self._path = path
        self._header = Header(FORMAT, VERSION, FIELDS, list(unseen), list(missed))
        self._waiting: list[Event] = []
        self._file: BinaryIO | None = None  # opened with the first record: until then what was there stays
        self._closed = False
        check_output("the log", path)

    def append(self, event: Event) -> None:
        """Take one event."""
        self._waiting.append(event)
        if len(self._waiting) >= CHUNK:
            self._flush()

    def close(self) -> None:
        """Write what is left, and the count. Safe to call twice."""
        if not self._closed:
            self._closed = True
            self._flush()
            self._write([Footer(self.count)])
            if self._file is not None:
                self._file.close()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _flush(self) -> None:
        events, self._waiting = self._waiting, []
        self.count += len(events)
        self._write(_short(event) for event in events)

    def _write(self, lines: Iterable[object]) -> None:
        try:
            if self._file is None:
                self._file = self._path.open("wb")
                self._write([self._header])
            self._file.writelines(_ENCODE(line) + b"\n" for line in lines)
        except OSError as cause:
            raise OutputError(
                f"the log '{self._path}' cannot be written ({cause.strerror}); it ends before that"
            ) from cause


def _short(event: Event) -> tuple[object, ...]:
    """Without what has its default at the end."""
    length = len(event)
    while event[length - 1] == _DEFAULTS[length - 1]:
        length -= 1
    return event[:length]


def write_log(path: Path, events: Iterable[Event], unseen: Sequence[str] = (), missed: Sequence[str] = ()) -> None:
    """Write a log that `read_log` takes."""
    with LogWriter(path, unseen, missed) as writer:
        for event in events:
            writer.append(event)


def read_log(path: Path) -> Log:
    """Read and check a whole log. InputError with file and line."""
    raw = read_input(path, str(path), "give a log that warfence wrote")
    lines = raw.split(b"\n")
    header = _header(path, lines[0])
    if lines.pop():
        raise InputError(f"{path}, line {len(lines) + 1}: cut off within the line; {_AGAIN}")
    events: list[Event] = []
    with no_collection():
        for start in range(1, len(lines) - 1, CHUNK):
            events += _events(path, start + 1, lines[start : min(start + CHUNK, len(lines) - 1)])
    try:
        count = _FOOTER.decode(lines[-1]).events
    except NO_JSON as error:
        raise InputError(
            f"{path}, line {len(lines)}: cut off, the last line does not count the events; {_AGAIN}"
        ) from error
    if count != len(events):
        raise InputError(f"{path}: {len(events)} events but the last line counts {count}; {_AGAIN}")
    return Log(events, tuple(header.unseen), tuple(header.missed))


def _header(path: Path, line: bytes) -> Header:
    try:
        header = msgspec.json.decode(line, type=Header)
    except NO_JSON as wrong:
        raise InputError(
            f"{path}, line 1: not the header of a {FORMAT} ({wrong}); give a file that warfence recorded"
        ) from wrong
    if header.version != VERSION:
        raise InputError(
            f"{path}, line 1: version {header.version} of {FORMAT}, this warfence reads version {VERSION}; "
            f"record the log again with this warfence"
        )
    if header.fields != FIELDS:
        raise InputError(f"{path}, line 1: fields {header.fields}; version {VERSION} has: {', '.join(FIELDS)}")
    return header


def _events(path: Path, first: int, lines: list[bytes]) -> list[Event]:
    """The events of these lines, all at once; one by one only to find the line that is wrong. first: number of the first."""
    try:
        events = _EVENTS.decode_lines(b"\n".join(lines))
    except NO_JSON:
        events = []
    for line, event in enumerate(events, first):
        if wrong := _wrong(event):
            raise InputError(f"{path}, line {line}: {wrong}")
    for number, raw in enumerate(lines if len(events) != len(lines) else (), first):
        if wrong := _malformed(raw):
            raise InputError(f"{path}, line {number}: {wrong}")
    return events


def _malformed(line: bytes) -> str:
    """Why a line is no event at all. Empty when it is one."""
    try:
        found = msgspec.json.decode(line)
    except NO_JSON as error:
        return f"not JSON ({error}); {_AGAIN}"
    if not isinstance(found, list) or not 2 <= len(found) <= len(FIELDS):
        return f"not an event; an event is a list of: {', '.join(FIELDS)}"
    if found[0] not in KINDS:
        return f"unknown kind {found[0]!r}; kinds: {', '.join(KINDS)}; record the log with this warfence"
    try:
        return _wrong(_EVENTS.decode(line))
    except msgspec.ValidationError:
        return f"a field has the wrong type; {', '.join(_NUMBERS)} are whole numbers, all others are texts"


def _wrong(event: Event) -> str:
    """What is wrong with an event, and what would be right. Empty when nothing is."""
    kind, lane, _, stage, resource, begin, end, name, generation, other, _ = event
    if not lane:
        return f"a {kind} without a lane; name one, '{HOST}' for the host"
    if kind in ACCESSES:
        if not resource or not 0 <= begin < end:
            return f"a {kind} of '{resource}' [{begin}, {end}); name a resource and cells with 0 <= begin < end"
    elif kind in STEPS:
        return "" if stage else f"a {kind} without its name; name it as 'stage'"
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
