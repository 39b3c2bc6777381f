"""What is to be served: entries from a prompts file or a trace. Each run gets fresh requests of the same entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warfence.core.errors import InputError
from warfence.host.files import MOST_TEXT, read_input
from warfence.serve.requests import Request
from warfence.serve.sampling import SamplingParams


@dataclass(frozen=True, slots=True)
class Entry:
    """One request to be: its prompt as text and as tokens, how much it may generate, and when it arrives (seconds)."""

    text: str
    tokens: tuple[int, ...]
    max_new_tokens: int
    arrival_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Workload:
    """Entries and how their tokens are chosen. `notes`: sentences about what had to be changed to serve them."""

    entries: tuple[Entry, ...]
    params: SamplingParams = SamplingParams()
    stop_at_eos: bool = True
    notes: tuple[str, ...] = ()

    def requests(self) -> list[Request]:
        """Fresh requests, numbered from 0: a request holds its own output, so no two runs may share one."""
        return [
            Request(i, entry.tokens, entry.max_new_tokens, self.params, entry.arrival_s, self.stop_at_eos)
            for i, entry in enumerate(self.entries)
        ]


def read_text_lines(path: Path, what: str) -> list[tuple[int, str]]:
    """(line number, line) of a UTF-8 file, without line ends; InputError names the file, and the line that is no UTF-8.

    `what` names the file's role in messages, such as "prompts file".
    """
    data = read_input(path, f"{what} '{path}'", "give the path of a text file", MOST_TEXT)
    # Not str.splitlines: it also splits at characters that belong into a prompt (U+2028), and the numbers go astray.
    return [(n, _decode(path, what, n, line)) for n, line in enumerate(data.split(b"\n"), start=1)]


def _decode(path: Path, what: str, number: int, line: bytes) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\r")
    except UnicodeDecodeError as cause:
        raise InputError(
            f"{what} '{path}', line {number}: not UTF-8 (byte 0x{line[cause.start]:02x} at column {cause.start + 1});"
            " save the file as UTF-8"
        ) from cause


def control_character(text: str) -> str | None:
    """The first control character of a text (a tab is none), as "U+001B"; None where there is none.

    Not served because printing it would steer the reader's terminal.
    """
    bad = next((c for c in text if (ord(c) < 32 and c != "\t") or 127 <= ord(c) < 160), None)
    return None if bad is None else f"U+{ord(bad):04X}"


def at_least(name: str, value: float | None, least: int) -> None:
    """InputError when an option is given and below its least value."""
    if value is not None and value < least:
        raise InputError(f"{name} is {value}; give at least {least}")


def first(entries: Sequence[Entry], limit: int | None) -> tuple[Entry, ...]:
    """The first `limit` entries; all of them with None."""
    return tuple(entries if limit is None else entries[:limit])
