"""Lanes order only each other: a lane that reaches a backend through the interface must be one of its own."""

from __future__ import annotations

from typing import TypeVar

from warfence.core.errors import FenceError
from warfence.core.fence import Lane

L = TypeVar("L")


def own_lane(lane: Lane, kind: type[L], table: str) -> L:
    """The lane on which a table is written, as what this backend makes. FenceError for another backend's."""
    if not isinstance(lane, kind):
        raise FenceError(
            f"table '{table}' was to be written on lane '{lane.name}' of another backend; lanes order only each other"
        )
    return lane
