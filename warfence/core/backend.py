"""The interface that a backend implements. It reads like a specification; `warfence.parity` checks it.

Three kinds of caller: the scheduler (writes tables on the schedule lane), the runner (issues launches on the forward
lane), and tests (gates, snapshots). Nothing here blocks the caller unless its docstring says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from jaxtyping import Float32, Int32

from warfence.core.batch import Batch
from warfence.core.errors import FenceError
from warfence.core.fence import WORD, AtLeast, Lane, Ticket, TicketSource, Word
from warfence.core.gates import Gates
from warfence.core.program import ForwardProgram, Gated

SCHEDULE, FORWARD, PLAN = "schedule", "forward", "plan"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do, said once. No rule looks at a platform's name (law 14); each lack has its reason.

    external_markers: a captured forward can carry an in-graph read-done marker.
    guards_writes: the runtime itself holds or refuses a table write that would overtake a reader (donation).
    gates: a forward can be held after each stage.
    precise_release: a write can land at the read boundary of a fine policy, not only after the forward.
    value_tickets: in-graph tickets are by value ("word >= launch"): never stale, and legal to wait for before their launch.
    ways: each way to let a write go at the boundary (hold, cut, word, node), and why it is not there; "" where it is.
    """

    external_markers: bool
    guards_writes: bool
    gates: bool
    precise_release: bool
    value_tickets: bool = False
    ways: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """Shape and dtype ("int32", "float32") of a zero-initialised array."""

    shape: tuple[int, ...]
    dtype: str = "int32"


class Outputs(Protocol):
    """The results of one launch, on their way to the host."""

    launch: int

    @property
    def device_s(self) -> float | None:
        """Seconds that the launch took on the forward lane, once `result` has returned; None where nobody can tell."""
        ...

    def result(self) -> Mapping[str, np.ndarray]:
        """Block the host until the results are here. Raises StageError when a stage of the launch failed."""
        ...


class Marker:
    """The read-done marker inside one captured forward. By event it is armed anew by each launch of that forward.

    The backend calls `issued` once the launch was issued; only then is there a ticket to hand over (law 5): a wait that
    is bound earlier would bind to the record of the launch before. With a `word`, whose value at first is `count`, tickets are
    by value: nothing binds to a record, so the ticket of the next launch is there before its launch.
    """

    def __init__(self, stage: str, word: Word | None = None, count: int = 0) -> None:
        self.stage = stage
        self.word = word
        self._count = count % WORD  # what the word holds once the last launch issued has its shared reads behind it
        self._launch: int | None = None
        self._source: TicketSource | None = None

    def issued(self, launch: int, source: TicketSource | None = None) -> None:
        """The launch was issued and re-armed `source`; with a word, it will increment that."""
        if self.word is not None:
            self._count = (self._count + 1) % WORD
            source = AtLeast(self.word, self._count, launch)
        self._launch, self._source = launch, source

    def ticket(self, launch: int) -> Ticket:
        """The ticket of `launch`. FenceError when that launch is not the last one issued, nor (by value) the next."""
        if self.word is not None and (self._launch is None or launch > self._launch):
            return Ticket(launch, AtLeast(self.word, (self._count + 1) % WORD, launch))
        if self._source is None or self._launch != launch:
            when = "after it was issued, and before the next" if self.word is None else "before the next was issued"
            raise FenceError(
                f"marker after '{self.stage}': ticket of launch {launch} asked for, last issued launch is "
                f"{self._launch}; ask for an in-graph ticket {when}"
            )
        return Ticket(launch, self._source)


class Forward(Protocol):
    """One compiled forward of one shape. Its three regions are issued in order, each returning at once."""

    @property
    def program(self) -> ForwardProgram: ...
    @property
    def marker(self) -> Marker | None: ...
    @property
    def gates(self) -> Gates | None: ...

    def load_batch(self, batch: Batch, launch: int) -> None:
        """Stage the batch and run the load_batch stages. `batch.words` may be in use until the launch is over."""
        ...

    def replay(self, launch: int) -> None:
        """Issue the captured part. Afterwards `marker.ticket(launch)` is legal, where there is a marker."""
        ...

    def tail(self, launch: int) -> Outputs:
        """Issue the tail stages (relay, copy of the outputs to the host)."""
        ...


class SharedTables(Protocol):
    """The scheduler-written, forward-read tables. int32, written by cell, read by stages only."""

    def write(self, lane: Lane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]) -> None:
        """Enqueue table.flat[cells] = values on the lane.

        Cells are distinct and in range; a backend need not check that (the strict reference backend does).

        The caller never writes the arrays again. Legal to enqueue at any time; it may land only after the waits of the
        lane (that is the fence).
        """
        ...

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        """Block until all enqueued writes landed, and copy the table. For tests."""
        ...


class Backend(Protocol):
    """One implementation: a framework on a device."""

    name: str
    device: str
    capabilities: Capabilities

    @property
    def compilations(self) -> int:
        """Executables compiled or graphs captured so far; constant after warm-up."""
        ...

    def lane(self, name: str) -> Lane:
        """The lane of that name (`schedule`, `forward`, `plan`), made at first use."""
        ...

    def tables(self, specs: Mapping[str, ArraySpec]) -> SharedTables:
        """Make the shared tables, zeroed. Called once, before `compile`."""
        ...

    def load(self, params: Mapping[str, Float32[np.ndarray, "..."]], state: Mapping[str, ArraySpec]) -> None:
        """Put the weights on the device and make the forward-private state, zeroed. Called once, before `compile`."""
        ...

    def compile(self, program: ForwardProgram, *, marker_after: str | None = None, gated: Gated = False) -> Forward:
        """Capture or compile one forward.

        marker_after: plant the read-done marker after this stage (a replay stage). Where `external_markers` is False
        the forward comes back with `marker` None, and the policy degrades later.
        gated: put a gate before the first and after every stage (after the marker, where the marker stands there), or only
        at the positions named. Launch numbers ascend; a launch that was not finished is given up by the next load_batch.
        """
        ...

    def state_to_host(self, name: str) -> np.ndarray:
        """Block until the forward lane is done and copy one state array. For tests."""
        ...

    def report(self) -> Mapping[str, object]:
        """What the runtime did that the fence did not ask for (writes held, dead handles refused); versions; bytes."""
        ...

    def close(self) -> None:
        """End lanes and threads. Safe to call twice, and after a failure."""
        ...


__all__ = [
    "FORWARD",
    "PLAN",
    "SCHEDULE",
    "ArraySpec",
    "Backend",
    "Capabilities",
    "Forward",
    "Lane",
    "Marker",
    "Outputs",
    "SharedTables",
]
