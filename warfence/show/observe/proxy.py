"""The one proxy: a backend that hands every call on, and tells its observers. It can all that the one inside can.

It uses nothing but `warfence.core.backend`, so it observes any backend. Lanes, tickets and tables of an observed backend belong
together; those of the inner one are foreign here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float32, Int32

from warfence.core.abilities import StageTime, Stamp, Timer, methods_of
from warfence.core.backend import ArraySpec, Backend, Capabilities, Lane, SharedTables
from warfence.core.fence import Ticket, TicketSource
from warfence.core.program import ForwardProgram, Gated
from warfence.races.check.places import call_site
from warfence.show.observe.forward import ObservedForward
from warfence.show.observe.observer import Call, Observer
from warfence.show.observe.source import ObservedSource, Observing


def inner_lane(lane: Any) -> Any:
    """The backend's own lane; one that is foreign here as it is, to be refused there."""
    return lane.inner if isinstance(lane, ObservedLane) else lane


class ObservedLane:
    """Implements `warfence.core.backend.Lane`."""

    def __init__(self, inner: Lane, observing: Observing) -> None:
        self.inner, self.name, self._observing = inner, inner.name, observing

    def wait(self, ticket: Ticket) -> None:
        given = ticket.source if isinstance(ticket.source, ObservedSource) else None
        source = given.inner if given is not None else ticket.source
        call = Call("wait", call_site(2), ticket.launch, self.inner, source=source)
        self._observing.tell(call, lambda: self.inner.wait(Ticket(ticket.launch, source)), given)

    def wait_lane(self, other: Lane) -> None:
        own = inner_lane(other)
        self._observing.tell(Call("wait_lane", call_site(2), 0, self.inner, own), lambda: self.inner.wait_lane(own))

    def record(self, launch: int) -> Ticket:
        call = Call("record", call_site(2), launch, self.inner)

        def record() -> TicketSource:
            call.source = self.inner.record(launch).source
            return call.source  # type: ignore[no-any-return]

        source, labels = self._observing.tell(call, record)
        return Ticket(launch, ObservedSource(source, launch, labels, self._observing))

    def settle(self, bound_s: float) -> bool:
        call = Call("settle", call_site(2), 0, self.inner)
        return self._observing.tell(call, lambda: self.inner.settle(bound_s))[0]

    def synchronize(self) -> None:
        self._observing.tell(Call("synchronize", call_site(2), 0, self.inner), self.inner.synchronize)


class ObservedTables:
    """Implements `warfence.core.backend.SharedTables`."""

    def __init__(self, inner: SharedTables, observing: Observing) -> None:
        self._inner, self._observing = inner, observing

    def write(self, lane: Lane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]) -> None:
        own = inner_lane(lane)
        call = Call("write", call_site(2), 0, own, name=name, cells=cells)
        self._observing.tell(call, lambda: self._inner.write(own, name, cells, values))

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        call = Call("snapshot", call_site(2), name=name)
        return self._observing.tell(call, lambda: self._inner.snapshot_to_host(name))[0]


class ObservedTimer:
    """Implements `warfence.core.abilities.Timer` for whoever has the lanes of the proxy."""

    def __init__(self, inner: Timer) -> None:
        self._inner, self.about, self.unit = inner, inner.about, inner.unit
        self.unix_ns = inner.unix_ns

    def start(self) -> None:
        self._inner.start()
        self.unix_ns = self._inner.unix_ns

    def now(self) -> float:
        return self._inner.now()

    def before(self, lane: Any) -> Stamp:
        return self._inner.before(inner_lane(lane))

    def after(self, lane: Any) -> Stamp:
        return self._inner.after(inner_lane(lane))

    def stages(self) -> list[StageTime]:
        return self._inner.stages()


class Observed:
    """Implements `warfence.core.backend.Backend` around another one, with every ability of that (law 16)."""

    def __init__(self, inner: Backend, *observers: Observer) -> None:
        self.inner = inner
        self.name, self.device = inner.name, inner.device
        self.capabilities: Capabilities = inner.capabilities
        self.observing = Observing(observers)
        self._lanes: dict[str, ObservedLane] = {}
        for method in methods_of():
            if (able := getattr(inner, method, None)) is not None:
                setattr(self, method, self._translated(method, able))
        for observer in observers:
            observer.begin(inner)

    @staticmethod
    def _translated(method: str, able: Callable[..., Any]) -> Callable[..., Any]:
        """The ability, in terms of the proxy's own lanes."""
        return (lambda: ObservedTimer(able())) if method == "time_stages" else able

    @property
    def compilations(self) -> int:
        return self.inner.compilations

    def lane(self, name: str) -> ObservedLane:
        if name not in self._lanes:
            self._lanes[name] = ObservedLane(self.inner.lane(name), self.observing)
        return self._lanes[name]

    def tables(self, specs: Mapping[str, ArraySpec]) -> ObservedTables:
        made = self.inner.tables(specs)
        for observer in self.observing.observers:
            observer.tables(specs)
        return ObservedTables(made, self.observing)

    def load(self, params: Mapping[str, Float32[np.ndarray, "..."]], state: Mapping[str, ArraySpec]) -> None:
        self.inner.load(params, state)

    def compile(
        self, program: ForwardProgram, *, marker_after: str | None = None, gated: Gated = False
    ) -> ObservedForward:
        forward = self.inner.compile(program, marker_after=marker_after, gated=gated)
        for observer in self.observing.observers:
            observer.compiled(forward)
        return ObservedForward(forward, self.observing)

    def state_to_host(self, name: str) -> np.ndarray:
        call = Call("state", call_site(2), name=name)
        return self.observing.tell(call, lambda: self.inner.state_to_host(name))[0]

    def report(self) -> Mapping[str, object]:
        return self.inner.report()

    def close(self) -> None:
        self.inner.close()
