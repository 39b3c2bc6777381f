"""Where the shared reads of a traced function end, and so where its read-done marker belongs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from warfence.core.errors import InputError
from warfence.core.modes import WarReadDonePolicy
from warfence.parity.boundary.trace import Operation


@dataclass(frozen=True, slots=True)
class Boundary:
    """The read boundary of one function.

    after: the operation that the marker stands behind; None where nothing is read, and the ticket is out before the start.
    reads: all operations that read a shared array. unseen: those whose accesses cannot be seen: the marker stands behind
    them too. operations: how many the function has.
    """

    after: Operation | None
    reads: tuple[Operation, ...]
    unseen: tuple[Operation, ...]
    operations: int
    last: tuple[Operation, ...] = ()

    @property
    def policy(self) -> WarReadDonePolicy:
        """What is published: before the replay where nothing is read, else at the marker."""
        return WarReadDonePolicy.IN_GRAPH if self.after is not None else WarReadDonePolicy.PRE_REPLAY

    @property
    def stage(self) -> str | None:
        """The stage of the last reader, where the trace knows stages."""
        return self.after.stage or None if self.after is not None else None

    @property
    def tables(self) -> tuple[str, ...]:
        """What the last reader reads, as far as that can be seen."""
        return tuple(dict.fromkeys(access.name for access in self.after.reads)) if self.after is not None else ()

    @property
    def place(self) -> str:
        """The code of the last reader; empty where nobody knows."""
        return self.after.where if self.after is not None else ""

    def lines(self) -> list[str]:
        """The report: every shared read with operation, cells and stack, and what decided."""
        said = [f"{op}: reads {', '.join(map(str, op.reads))}" for op in self.reads]
        said += [f"{op}: cannot be seen ({op.unseen}); the marker stands behind it" for op in self.unseen]
        if self.after is None:
            return [*said, "no shared array is read: the ticket is published before the replay (pre_replay)"]
        if len(self.last) > 1:
            ends = " and ".join(f"{op.kind} {op.position}" for op in self.last)
            return [*said, f"the reads end on {len(self.last)} branches: the marker stands behind {ends}"]
        return [
            *said,
            f"the reads end after {self.after.kind} {self.after.position} of {self.operations}: the marker stands there",
        ]

    def document(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return {
            "policy": self.policy.value,
            "after": self.after.document() if self.after is not None else None,
            "reads": [op.document() for op in self.reads],
            "unseen": [op.document() for op in self.unseen],
            "last": [op.position for op in self.last],
            "operations": self.operations,
        }


def find(operations: Iterable[Operation]) -> Boundary:
    """The boundary of a function: after the last operation that reads a shared array, or that may.

    InputError when an operation writes a shared array: the scheduler owns them.
    """
    count, last = 0, None
    reads: list[Operation] = []
    unseen: list[Operation] = []
    for op in operations:
        count += 1
        refuse_write(op)
        if op.reads:
            reads.append(op)
        if op.unseen:
            unseen.append(op)
        if op.reads or op.unseen:
            last = op
    return ends([last] if last is not None else [], reads, unseen, count)


def ends(
    last: Sequence[Operation], reads: Iterable[Operation], unseen: Iterable[Operation], operations: int
) -> Boundary:
    """A boundary behind these last readers, which are in order."""
    return Boundary(last[-1] if last else None, tuple(reads), tuple(unseen), operations, tuple(last))


def refuse_write(op: Operation) -> None:
    """InputError when this operation writes a shared array."""
    if op.writes:
        raise InputError(
            f"{op} writes {', '.join(map(str, op.writes))}, which is shared: only the scheduler writes shared arrays; "
            f"write to a private copy, or leave the array out of the shared ones"
        )
