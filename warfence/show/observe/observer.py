"""What an observer is told: every call that passes the interface of a backend, before it and after it.

An observer changes nothing that it observes (law 16): it gets the backend's own lanes and forwards, enqueues nothing that
orders anything, and what the backend raises goes on to whoever called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from warfence.core.backend import ArraySpec, Backend, Forward, Lane
from warfence.core.batch import Batch

Kind = Literal[
    "wait", "wait_lane", "record", "settle", "synchronize", "write", "snapshot", "load_batch", "replay", "tail",
    "result", "state", "source_done", "source_synchronize",
]  # fmt: skip


@dataclass(slots=True)
class Call:
    """One call. Lanes and forwards are the backend's own.

    where: who called, as a short text. launch: whose. lane: which it is for. other: the lane waited for. name: the table or
    state. source: the backend's own ticket source; label: what this observer gave it when it was recorded, None for one that was
    not recorded here. A replay has the source of its marker, once it returned. answer: of `settle` and `done`. error: what the
    backend raised.
    """

    kind: Kind
    where: str
    launch: int = 0
    lane: Lane | None = None
    other: Lane | None = None
    name: str = ""
    cells: np.ndarray | None = None
    batch: Batch | None = None
    forward: Forward | None = None
    source: Any = None
    label: Any = None
    answer: bool = True
    error: BaseException | None = None
    detail: dict[str, Any] = field(default_factory=dict)


class Observer(Protocol):
    """Sees the calls of one backend."""

    def begin(self, backend: Backend) -> None:
        """This backend is observed from here on. Called once, before anything else is asked of it."""
        ...

    def tables(self, specs: Mapping[str, ArraySpec]) -> None:
        """The shared tables are made."""
        ...

    def compiled(self, forward: Forward) -> None:
        """A forward was compiled."""
        ...

    def before(self, call: Call) -> Any:
        """The call is about to be made. What this returns comes back in `after`."""
        ...

    def after(self, call: Call, begun: Any) -> Any:
        """The call returned, or raised `call.error`. Of a record, and of a replay with a marker: the label of its source."""
        ...
