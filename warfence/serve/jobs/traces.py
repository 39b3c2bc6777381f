"""Traces as they are published, each known by its columns: when requests arrive, and how long they are.

CSV: Azure 2023 and 2024 (`TIMESTAMP,ContextTokens,GeneratedTokens`, dates), BurstGPT (`Timestamp,...,Request tokens,Response
tokens,...`, seconds). JSON lines: Mooncake (`timestamp` in milliseconds, `input_length`, `output_length`, `hash_ids` of blocks of
512 tokens) and Bailian (the same with `chat_id`; seconds, blocks of 16).
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warfence.core.errors import InputError
from warfence.serve.jobs.workload import read_text_lines

_WHAT = "trace"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: seconds after the first, prompt tokens, new tokens. hashes: of its blocks of `block` prompt tokens."""

    at_s: float
    context_tokens: int
    generated_tokens: int
    hashes: tuple[int, ...] = ()
    block: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """The arrivals, and sentences about rows that are none."""

    arrivals: tuple[Arrival, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """How a published form names its columns. seconds: of a time as it is written. failures: it keeps rows without an answer."""

    name: str
    time: str
    context: str
    generated: str
    seconds: Callable[[Any], float]
    failures: bool = False
    block: int = 0
    mark: str | None = None  # a column that only this form has

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(c for c in (self.time, self.context, self.generated, self.mark) if c is not None)


def _date(text: str) -> float:
    """Seconds since 1970; a date without a time zone is one of UTC."""
    date = datetime.fromisoformat(text.strip())
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


LENGTHS = ("timestamp", "input_length", "output_length")
CSV_FORMS = (
    Form("Azure", "TIMESTAMP", "ContextTokens", "GeneratedTokens", _date),
    Form("BurstGPT", "Timestamp", "Request tokens", "Response tokens", float, failures=True),
)
JSON_FORMS = (
    Form("Bailian", *LENGTHS, float, block=16, mark="chat_id"),
    Form("Mooncake", *LENGTHS, lambda value: float(value) / 1000, block=512),
)


def read_trace(path: Path, limit: int | None = None) -> Trace:
    """The first `limit` arrivals (None: all). InputError with file and line for one that does not parse."""
    lines = read_text_lines(path, _WHAT)
    rows = _json_rows(path, lines) if lines[0][1].lstrip().startswith("{") else _csv_rows(path, lines)
    found: list[tuple[int, Arrival]] = []
    failed = 0
    for number, form, row in rows:
        where = f"{_WHAT} '{path}', line {number}"
        arrival = _arrival(where, form, row)
        if arrival is None:
            failed += 1
            continue
        if found and arrival.at_s < found[-1][1].at_s:
            raise InputError(f"{where}: {row[form.time]!r} is earlier than line {found[-1][0]}; sort the lines by time")
        found.append((number, arrival))
        if len(found) == limit:  # what stands behind is not looked at
            break
    if not found:
        raise InputError(f"{_WHAT} '{path}' holds no arrival; allowed are {_allowed()}")
    start = found[0][1].at_s
    arrivals = tuple(
        Arrival(round(a.at_s - start, 6), a.context_tokens, a.generated_tokens, a.hashes, a.block) for _, a in found
    )
    return Trace(
        arrivals, (f"{failed} rows of the trace have no answer (failed requests) and are left out.",) if failed else ()
    )


def _arrival(where: str, form: Form, row: Mapping[str, Any]) -> Arrival | None:
    """One row; None for one that failed, where the form keeps those."""
    try:
        at = form.seconds(row[form.time])
        context, generated = (_count(row[column]) for column in (form.context, form.generated))
        hashes = tuple(_count(one) for one in row.get("hash_ids", ())) if form.block else ()
    except (ValueError, TypeError, KeyError, OverflowError) as cause:
        raise InputError(
            f"{where}: {_short(row)} does not parse as a row of {form.name} ({', '.join(form.columns)})"
        ) from cause
    if form.failures and generated == 0:
        return None
    if min(context, generated) < 1:
        raise InputError(f"{where}: {_short(row)} has a count below 1; give at least one token each")
    if not math.isfinite(at):
        raise InputError(f"{where}: {_short(row)} has no finite time; write seconds")
    return Arrival(at, context, generated, hashes, form.block)


def _csv_rows(path: Path, lines: list[tuple[int, str]]) -> Iterator[tuple[int, Form, Mapping[str, Any]]]:
    header = [name.strip() for name in _cells(path, *lines[0])]
    form = next((f for f in CSV_FORMS if {*f.columns} <= {*header}), None)
    if form is None:
        raise InputError(
            f"{_WHAT} '{path}', line 1: {lines[0][1][:200]!r} names other columns; allowed are {_allowed()}"
        )
    for number, line in lines[1:]:
        if line.strip():  # a blank line says nothing, so it is no arrival
            cells = _cells(path, number, line)
            if len(cells) != len(header):
                raise InputError(
                    f"{_WHAT} '{path}', line {number}: {line[:200]!r} has {len(cells)} cells, and line 1 has {len(header)}"
                )
            yield number, form, dict(zip(header, cells, strict=True))


def _cells(path: Path, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error as cause:
        raise InputError(f"{_WHAT} '{path}', line {number}: is no CSV ({cause})") from cause


def _json_rows(path: Path, lines: list[tuple[int, str]]) -> Iterator[tuple[int, Form, Mapping[str, Any]]]:
    for number, line in lines:
        if not line.strip():
            continue
        where = f"{_WHAT} '{path}', line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as cause:
            raise InputError(f"{where}: is no JSON ({cause}); write one object a line") from cause
        form = next((f for f in JSON_FORMS if isinstance(row, dict) and {*f.columns} <= {*row}), None)
        if form is None:
            raise InputError(f"{where}: {_short(row)} has other fields; allowed are {_allowed()}")
        yield number, form, row


def _count(value: object) -> int:
    """A whole number, out of a cell or a JSON value; ValueError for anything else."""
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(value)
    return int(value)  # type: ignore[call-overload, no-any-return]


def _short(row: object) -> str:
    return repr(", ".join(str(v) for v in row.values()) if isinstance(row, Mapping) else row)[:200]


def _allowed() -> str:
    return "; ".join(f"{f.name}: {', '.join(f.columns)}" for f in (*CSV_FORMS, *JSON_FORMS))
