"""Holds what was declared, and so decided, against the boundary that was found. A wrong declaration is refused here."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from warfence.core.errors import InputError
from warfence.core.modes import Region, WarReadDonePolicy
from warfence.core.program import ForwardProgram
from warfence.parity.boundary.find import Boundary


@runtime_checkable
class FindsBoundary(Protocol):
    """A backend that traces its kernels. One that cannot is trusted with what is declared, and audits say so."""

    def find_boundary(self, program: ForwardProgram) -> Boundary:
        """Where the shared reads of the whole program end, by its kernels; operations know their stages.

        Called after `tables` and `load`. InputError when a kernel writes a shared table.
        """
        ...


def disagreement(
    program: ForwardProgram, found: Boundary, policy: WarReadDonePolicy, marker_after: str | None
) -> str | None:
    """What is wrong about publishing by this policy (its marker after that stage); None when it fits what was found.

    A ticket that is out before the last read corrupts, one behind it waits for more than it need.
    """
    late = found.stage
    if policy is WarReadDonePolicy.NONE:
        return None  # nothing is promised
    region = program.stages[program.index(late)].region if late is not None else Region.LOAD_BATCH
    where = f"stage '{late}' is found to read {_tables(found)} last, at {_place(found)}"
    if policy is WarReadDonePolicy.PRE_REPLAY and region is not Region.LOAD_BATCH:
        return f"the reads are declared to end before the replay, but {where}"
    if policy is WarReadDonePolicy.POST_REPLAY and region is Region.TAIL:
        return f"the reads are declared to end with the replay, but {where}"
    if policy is WarReadDonePolicy.IN_GRAPH and late != marker_after:
        if late is None:
            return f"the reads are declared to end after '{marker_after}', but no stage is found to read a shared table"
        return f"the reads are declared to end after '{marker_after}', but {where}"
    return None


def confirm(program: ForwardProgram, found: Boundary, policy: WarReadDonePolicy, marker_after: str | None) -> None:
    """InputError with the late stage and its code when what is declared is not what was found."""
    if wrong := disagreement(program, found, policy, marker_after):
        raise InputError(f"program '{program.name}': {wrong}; correct the declaration of the attention backend")


def _tables(found: Boundary) -> str:
    reads = found.after.reads if found.after is not None else ()
    return " and ".join(dict.fromkeys(f"'{access.name}'" for access in reads)) or "a shared table, perhaps,"


def _place(found: Boundary) -> str:
    return (found.after.where if found.after is not None else "") or "an unknown place"
