"""Prompts from a text file, one a line; every line is checked before any work starts."""

from __future__ import annotations

from pathlib import Path

from warfence.core.errors import InputError
from warfence.serve.jobs.workload import Entry, Workload, control_character, read_text_lines
from warfence.serve.model import ASSETS
from warfence.serve.model.tokenizer import Tokenizer
from warfence.serve.sampling import SamplingParams

DEFAULT_PROMPTS = ASSETS / "prompts.txt"
DEFAULT_NEW_TOKENS = 48
_WHAT = "prompts file"


def read_prompts(path: Path, limit: int | None = None) -> list[tuple[int, str]]:
    """(line number, prompt) of the first `limit` lines (None: all). InputError with the number of a bad line."""
    lines = read_text_lines(path, _WHAT)
    while lines and not lines[-1][1].strip():  # the last line end, and blank lines after the last prompt
        lines.pop()
    if not lines:
        raise InputError(f"{_WHAT} '{path}' holds no prompt; write one prompt a line")
    for number, text in lines[:limit]:
        if not text.strip():
            raise InputError(f"{_WHAT} '{path}', line {number}: blank; write a prompt there or remove the line")
        if seen := control_character(text):
            raise InputError(f"{_WHAT} '{path}', line {number}: holds the control character {seen}; remove it")
    return lines[:limit]


def prompt_workload(
    path: Path, tokenizer: Tokenizer, room: int, new_tokens: int, params: SamplingParams, limit: int | None = None
) -> Workload:
    """One request a line, each with up to `new_tokens` new tokens. `room`: tokens that context and KV pool hold."""
    entries = []
    for number, text in read_prompts(path, limit):
        where = f"{_WHAT} '{path}', line {number}"
        try:
            tokens = tuple(tokenizer.encode(text))
        except InputError as beyond:
            raise InputError(f"{where}: {beyond}") from beyond
        if not tokens:
            raise InputError(f"{where}: the tokenizer makes no token of it; write another prompt")
        if len(tokens) + new_tokens > room:
            raise InputError(
                f"{where}: {len(tokens)} prompt tokens + {new_tokens} new tokens = {len(tokens) + new_tokens}, but"
                f" context and KV pool hold {room}; shorten the prompt, or lower --max-new-tokens"
            )
        entries.append(Entry(text, tokens, new_tokens))
    return Workload(tuple(entries), params)
