"""Numbers out of a parsed JSON object, each checked, with the model and the field in every message."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from warfence.core.errors import InputError


def whole(raw: Mapping[str, Any], key: str, name: str, default: int | None = None) -> int:
    """An integer; ``default`` where it is absent or null. ``InputError`` for anything else, and where there is neither."""
    value = raw.get(key)
    if value is None:
        value = default
    if value is None:
        raise InputError(f"model '{name}': config.json has no '{key}'; it needs an integer there")
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"model '{name}': {key} is {value!r}; it must be an integer")
    return value


def number(raw: Mapping[str, Any], key: str, name: str, default: float | None = None) -> float:
    """A positive finite number; ``default`` where it is absent or null."""
    value = raw.get(key)
    if value is None:
        value = default
    if value is None:
        raise InputError(f"model '{name}': config.json has no '{key}'; it needs a positive number there")
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < math.inf:
        raise InputError(f"model '{name}': {key} is {value!r}; it must be a positive number")
    return float(value)


def token_ids(value: object, key: str, name: str) -> tuple[int, ...]:
    """A token id field: an integer, a list of integers, or null (none)."""
    items = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        raise InputError(f"model '{name}': {key} is {value!r}; allowed are an integer, a list of integers, or null")
    return tuple(items)
