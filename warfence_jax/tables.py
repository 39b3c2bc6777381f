"""What the two kinds of shared tables have in common. Donated: the runtime guards them. Aliased: only the fence does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, Protocol

import numpy as np
from jax import Array
from jaxtyping import Int32

from warfence.core.backend import ArraySpec, Lane
from warfence.core.errors import DeadHandleError, InputError
from warfence_jax.tokens import Promise

Cells = Int32[np.ndarray, " n"]


class Version:
    """One table between two writes. `handle` is there once the write that makes the version was dispatched.

    readers: the tokens of executables that take this version and are not known to be over.
    lane: the lane of the write that makes it. behind: the readers that held that write, or a write before it.
    """

    __slots__ = ("behind", "handle", "lane", "number", "promise", "readers", "table")

    def __init__(self, table: str, number: int, promise: Promise | None = None, handle: Array | None = None) -> None:
        self.table, self.number, self.promise, self.handle = table, number, promise, handle
        self.readers: list[Promise] = []
        self.lane: str | None = None
        self.behind: tuple[Promise, ...] = ()

    def dead(self) -> bool:
        return self.handle is None or self.handle.is_deleted()


class Tables(Protocol):
    """What a forward and a planner need of tables (`warfence.core.backend.SharedTables`, and versions)."""

    specs: Mapping[str, ArraySpec]
    refused: int  # launches that came with a dead handle

    def capture(self, lane: Any, names: Iterable[str]) -> dict[str, Version]:
        """The versions current now; their handles are there when later dispatches of the lane run."""
        ...

    def taken(self, version: Version, reader: Promise) -> None:
        """An executable that takes the version was enqueued."""
        ...

    def write(self, lane: Lane, name: str, cells: Cells, values: Cells) -> None:
        """See `warfence.core.backend.SharedTables.write`. InputError for cells that there are not."""
        ...

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        """See `warfence.core.backend.SharedTables.snapshot_to_host`."""
        ...

    def report(self) -> Mapping[str, object]:
        """What happened to the tables, for `Backend.report`."""
        ...


def dead_handle(version: Version, launch: int, stage: str) -> DeadHandleError:
    """The error for a launch that came with a version whose memory a later write has taken."""
    return DeadHandleError(
        f"launch {launch}, stage '{stage}': table '{version.table}' was captured as version {version.number}, "
        f"whose memory write {version.number + 1} has taken over: that write was issued between the launch's "
        f"load_batch and this read; issue writes before load_batch, or after the replay and behind the WAR barrier"
    )


def check_write(specs: Mapping[str, ArraySpec], name: str, cells: np.ndarray, values: np.ndarray) -> None:
    """Raise InputError for a table that there is not, or cells outside of it."""
    if name not in specs:
        raise InputError(f"no table '{name}'; tables: {', '.join(specs)}")
    size = prod(specs[name].shape)
    if len(cells) != len(values):
        raise InputError(f"table '{name}': {len(cells)} cells but {len(values)} values in one write")
    if len(cells) and cells.view(np.uint32).max() >= size:  # a negative one is large there: one pass over them
        raise InputError(
            f"table '{name}': a write to cells {cells.min()} to {cells.max()}; allowed are 0 to {size - 1}"
        )
