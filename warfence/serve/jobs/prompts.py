"""Prompts from a file; every one is checked before any work starts.

The content says which form it is: a text file with one prompt a line; ShareGPT, a JSON list of objects with `conversations`;
MT-bench, JSON lines with `turns`. Of a conversation the first turn of the user is served.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warfence.core.errors import InputError
from warfence.serve.jobs.workload import Entry, Workload, control_character, read_text_lines
from warfence.serve.model import ASSETS
from warfence.serve.sampling import SamplingParams

DEFAULT_PROMPTS = ASSETS / "prompts.txt"
DEFAULT_NEW_TOKENS = 48
_WHAT = "prompts file"
_FORMS = (
    'allowed are ShareGPT (a list of {"conversations": [{"from": "human", "value": ...}]}), MT-bench (one {"turns": [...]} a'
    " line), and text"
)
Prompt = tuple[str, str]  # where it stands, such as "line 3", and its text


def read_prompts(path: Path, limit: int | None = None) -> list[Prompt]:
    """The first `limit` prompts (None: all). InputError with the line or the item of a bad one."""
    lines = read_text_lines(path, _WHAT)
    while lines and not lines[-1][1].strip():  # the last line end, and blank lines after the last prompt
        lines.pop()
    if not lines:
        raise InputError(f"{_WHAT} '{path}' holds no prompt; write one prompt a line")
    first = next((text for _, text in lines if text.strip()), "").lstrip()
    if first.startswith("{") and (first == "{" or isinstance(_parsed(first), dict)):
        return _json_lines(path, lines[:limit])
    if first.startswith("["):
        whole = _parsed("\n".join(text for _, text in lines))
        if isinstance(whole, list) and all(isinstance(item, dict) for item in whole):
            return [
                _checked(path, f"item {n}", _turn(path, f"item {n}", item)) for n, item in enumerate(whole[:limit], 1)
            ]
    for number, text in lines[:limit]:
        if not text.strip():
            raise InputError(f"{_WHAT} '{path}', line {number}: blank; write a prompt there or remove the line")
        if seen := control_character(text):
            raise InputError(f"{_WHAT} '{path}', line {number}: holds the control character {seen}; remove it")
    return [(f"line {number}", text) for number, text in lines[:limit]]


def _json_lines(path: Path, lines: list[tuple[int, str]]) -> list[Prompt]:
    found = []
    for number, text in lines:
        if text.strip():
            where = f"line {number}"
            found.append(_checked(path, where, _turn(path, where, _parsed(text))))
    return found


def _turn(path: Path, where: str, item: Any) -> str:
    """The first turn of the user."""
    if isinstance(item, dict):
        match item:
            case {"turns": [str(text), *_]}:
                return text
            case {"conversations": [*turns]}:
                for turn in turns:
                    match turn:
                        case {"from": "human" | "user", "value": str(text)}:
                            return text
    raise InputError(f"{_WHAT} '{path}', {where}: holds JSON without a first turn of a user; {_FORMS}")


def _checked(path: Path, where: str, text: str) -> Prompt:
    """Line ends belong into a JSON text; what steers a terminal does not."""
    if not text.strip():
        raise InputError(f"{_WHAT} '{path}', {where}: the first turn is blank; write a prompt there or remove it")
    if seen := control_character(text.replace("\n", " ").replace("\r", " ")):
        raise InputError(f"{_WHAT} '{path}', {where}: holds the control character {seen}; remove it")
    return where, text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def prompt_workload(
    path: Path,
    encode: Callable[[str], list[int]],
    room: int,
    new_tokens: int,
    params: SamplingParams,
    limit: int | None = None,
) -> Workload:
    """One request a prompt, each with up to `new_tokens` new tokens. `room`: tokens that context and KV pool hold."""
    entries = []
    for place, text in read_prompts(path, limit):
        where = f"{_WHAT} '{path}', {place}"
        try:
            tokens = tuple(encode(text))
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
