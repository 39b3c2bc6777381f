"""Where a write lands behind a planted graph's ticket, seen by holding the graph at its gates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from warfence.core.errors import FenceError
from warfence.core.fence import Lane, Ticket
from warfence.core.gates import Gates

END = "end"


class Held(Protocol):
    """A planted graph with gates, as `plant_graph(..., gated=True)` makes it."""

    gates: Gates | None

    def replay(self, lane: Any, launch: int) -> None: ...
    def ticket(self, launch: int) -> Ticket: ...


def landed_at(
    held: Held, forward: Lane, schedule: Lane, write: Callable[[], None], bound_s: float = 1.0, launch: int = 1
) -> str:
    """The first gate at which a write behind the ticket lands while the graph stands there; "end" where at none.

    write: enqueues it on the schedule lane. bound_s: seconds that a write gets where only the runtime knows what holds it.
    launch: the number of the first launch; each gate takes one. FenceError without gates.
    """
    if held.gates is None:
        raise FenceError("the planted graph has no gates to hold it at; plant it with gated=True")
    gates = held.gates
    for number, position in enumerate(gates.positions, launch):
        gates.close(position)
        try:
            held.replay(forward, number)
            gates.await_reached(position)
            schedule.wait(held.ticket(number))
            write()
            landed = schedule.settle(bound_s)
        finally:
            gates.open_all()
        forward.synchronize()
        schedule.synchronize()
        if landed:
            return position
    return END
