"""Arrivals from a trace: CSV lines `TIMESTAMP,ContextTokens,GeneratedTokens` (the form of the public Azure LLM traces).

A trace tells lengths, not texts. The prompts' tokens, one after the other and from the start again, give each request
as many tokens as the trace says; an end-of-text token does not stop it, so that it generates as many as the trace says.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import cycle, islice
from pathlib import Path

from warfence.core.errors import InputError
from warfence.serve.jobs.workload import Entry, Workload, read_text_lines
from warfence.serve.model.tokenizer import Tokenizer
from warfence.serve.sampling import SamplingParams

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_WHAT = "trace"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One line: seconds after the first line, prompt tokens, new tokens."""

    at_s: float
    context_tokens: int
    generated_tokens: int


def read_trace(path: Path, limit: int | None = None) -> list[Arrival]:
    """The first `limit` arrivals (None: all). InputError with file and line for one that does not parse."""
    lines = read_text_lines(path, _WHAT)
    header = tuple(lines[0][1].strip().split(","))
    if header != COLUMNS:
        raise InputError(f"{_WHAT} '{path}', line 1: {lines[0][1]!r}; the first line must be {','.join(COLUMNS)}")
    found: list[tuple[int, datetime, int, int]] = []
    for number, line in lines[1:]:
        if len(found) == limit:
            break
        if line.strip():  # a blank line says nothing, so it is no arrival
            found.append(_arrival(path, number, line))
    if not found:
        raise InputError(f"{_WHAT} '{path}' holds no arrival; write lines of {','.join(COLUMNS)} below the first")
    return [_relative(path, found[0][1], one) for one in found]


def trace_workload(
    arrivals: Sequence[Arrival], texts: Sequence[str], tokenizer: Tokenizer, room: int, params: SamplingParams,
    speed: float = 1.0, most_new_tokens: int | None = None,
) -> Workload:  # fmt: skip
    """Requests of the trace's lengths. `room`: tokens that context and KV pool hold; what is longer is clipped.

    speed: 2.0 lets them arrive twice as fast. most_new_tokens: a bound on the new tokens of each (None: the trace's).
    """
    tokens = _endless([tokenizer.encode(text) for text in texts])
    entries: list[Entry] = []
    long_prompts = long_outputs = 0
    for arrival in arrivals:
        prompt, new = _clip(arrival, room, most_new_tokens)
        long_prompts += prompt < arrival.context_tokens
        long_outputs += new < arrival.generated_tokens
        ids = tuple(islice(tokens, prompt))
        entries.append(Entry(tokenizer.decode(ids), ids, new, arrival.at_s / speed))
    notes = (
        f"{long_prompts} of {len(entries)} prompts and {long_outputs} of {len(entries)} outputs of the trace were"
        f" longer than what is served (context and KV pool: {room} tokens"
        + (f", --max-new-tokens {most_new_tokens}" if most_new_tokens is not None else "")
        + ") and were clipped.",
    )
    return Workload(tuple(entries), params, False, notes if long_prompts or long_outputs else ())


def _clip(arrival: Arrival, room: int, most_new: int | None) -> tuple[int, int]:
    """(prompt tokens, new tokens) that fit. The prompt gives way first, but keeps half of the room."""
    new = min(arrival.generated_tokens, most_new or arrival.generated_tokens)
    new = min(new, max(room - room // 2, room - arrival.context_tokens))
    return min(arrival.context_tokens, room - new), new


def _endless(parts: Sequence[Sequence[int]]) -> Iterator[int]:
    flat = [token for part in parts for token in part]
    if not flat:
        raise InputError("the prompts give no token to make the trace's prompts of; write another prompt")
    return cycle(flat)


def _arrival(path: Path, number: int, line: str) -> tuple[int, datetime, int, int]:
    cells = next(csv.reader([line]))
    try:
        stamp, context, generated = cells
        parsed = (number, datetime.fromisoformat(stamp.strip()), int(context), int(generated))
    except ValueError as cause:
        raise InputError(
            f"{_WHAT} '{path}', line {number}: {line!r} does not parse; write {','.join(COLUMNS)}, such as"
            " 2023-11-16 18:15:46.680,374,44"
        ) from cause
    if min(parsed[2:]) < 1:
        raise InputError(f"{_WHAT} '{path}', line {number}: {line!r} has a count below 1; give at least one token each")
    return parsed


def _relative(path: Path, start: datetime, one: tuple[int, datetime, int, int]) -> Arrival:
    number, stamp, context, generated = one
    if (stamp.tzinfo is None) != (start.tzinfo is None) or stamp < start:
        raise InputError(
            f"{_WHAT} '{path}', line {number}: {stamp} is not comparable with or earlier than the first line's {start};"
            " sort the lines by time, in one time zone"
        )
    return Arrival((stamp - start).total_seconds(), context, generated)
