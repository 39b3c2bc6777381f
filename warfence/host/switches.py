"""Switches in the environment: 0 or 1, or not set. Anything else is refused by name, for it is not what somebody meant."""

from __future__ import annotations

import os

from warfence.core.errors import InputError


def switch(name: str) -> bool:
    """Whether this variable is 1. InputError for what is neither 0 nor 1; set to nothing is not set."""
    value = os.environ.get(name, "")
    if value not in ("", "0", "1"):
        raise InputError(f"{name} is {value!r:.80}; it is 0 or 1, or not set")
    return value == "1"
