"""Law 16: an observer changes nothing that it observes. Every wrapper can all that the backend inside can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from warfence import backends
from warfence.core.abilities import ABILITIES, FindsBoundary, methods_of
from warfence.core.backend import Backend, Marker
from warfence.core.errors import FenceError, InputError
from warfence.core.fence import Ticket
from warfence.parity.laws.base import decode_cell
from warfence.parity.rig import Rig, batch_of
from warfence.parity.small import first_difference, make_engine, serve, small_model
from warfence.parity.strict.backend import StrictBackend
from warfence.show.observe import Call, EventLog, Observed, Tracer
from warfence.show.observe.forward import ObservedForward
from warfence.show.observe.source import Observing

Wrap = Callable[[Backend], Backend]


class Quiet:
    """Implements `Observer` with nothing."""

    def begin(self, backend: Backend) -> None: ...
    def tables(self, specs: Mapping[str, Any]) -> None: ...
    def compiled(self, forward: Any) -> None: ...
    def before(self, call: Call) -> None: ...
    def after(self, call: Call, begun: None) -> None: ...


WRAPPERS: dict[str, Wrap] = {
    "nothing": lambda inner: Observed(inner),
    "log": lambda inner: Observed(inner, EventLog([].append)),
    "times": lambda inner: Observed(inner, Tracer()),
    "log and times": lambda inner: Observed(inner, EventLog([].append), Tracer()),
    "twice": lambda inner: Observed(Observed(inner, Quiet()), Quiet()),
}


class Able(StrictBackend):
    """A backend with every ability."""

    def find_boundary(self, program: Any) -> Any:
        raise InputError("found")

    def graph_boundary(self, program: Any) -> Any:
        raise InputError("graph")

    def compiled_boundary(self, forward: Any) -> Any:
        raise InputError("compiled")

    def profiled(self, path: Any) -> Any:
        raise InputError("profiled")

    def barrier_latency_us(self, *arguments: Any) -> Any:
        raise InputError("latency")


def dropped(inner: Backend, wrapped: Backend) -> list[str]:
    """The abilities that one of the two has and the other has not."""
    return [one.__name__ for one in ABILITIES if isinstance(inner, one) != isinstance(wrapped, one)]


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("make", [Able, StrictBackend], ids=["all abilities", "strict"])
def test_no_wrapper_drops_or_adds_an_ability(make: Callable[[], Backend], wrap: Wrap) -> None:
    inner = make()
    assert dropped(inner, wrap(inner)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch", "jax"])
@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_no_wrapper_drops_an_ability_of_a_real_backend(name: str, wrap: Wrap) -> None:
    pytest.importorskip(name)
    inner = backends.load(name)(device="cpu")
    try:
        assert any(isinstance(inner, one) for one in ABILITIES)
        assert dropped(inner, wrap(inner)) == []
    finally:
        inner.close()


@pytest.mark.parametrize("method", methods_of())
def test_a_wrapper_that_drops_one_is_caught(method: str) -> None:
    inner = Able()
    wrapped = Observed(inner)
    delattr(wrapped, method)
    assert len(dropped(inner, wrapped)) == 1


def test_what_an_ability_raises_goes_on_to_the_caller() -> None:
    wrapped = Observed(Able(), EventLog([].append))
    assert isinstance(wrapped, FindsBoundary)
    with pytest.raises(InputError, match="found"):
        wrapped.find_boundary(None)  # type: ignore[arg-type]


def test_a_wrong_declaration_is_refused_through_a_wrapper_too() -> None:
    small = small_model()
    with pytest.raises(InputError, match="found"):
        make_engine(small, WRAPPERS["log and times"](Able()), rows=2, extend_rows=1).__enter__()


@pytest.mark.slow
@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_tokens_are_the_same_through_every_wrapper(wrap: Wrap) -> None:
    small = small_model()
    with make_engine(small, wrap(StrictBackend()), rows=2, extend_rows=1) as engine:
        requests, summary = serve(engine)
    assert first_difference(requests, small.expected[False]) is None
    assert summary.barriers["fine"] > 0


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_what_the_backend_refuses_is_refused_through_every_wrapper(wrap: Wrap) -> None:
    backend = wrap(StrictBackend())
    schedule, forward = backend.lane("schedule"), backend.lane("forward")
    right = forward.record(1)
    schedule.wait(right)
    with pytest.raises(FenceError, match="stale"):
        schedule.wait(Ticket(2, right.source))


def test_each_observer_gets_back_its_own_label() -> None:
    class Labels(Quiet):
        def __init__(self, name: str) -> None:
            self.name, self.seen = name, list[Any]()

        def after(self, call: Call, begun: None) -> Any:
            if call.kind == "wait":
                self.seen.append(call.label)
            return self.name if call.kind == "record" else None

    a, b = Labels("a"), Labels("b")
    backend = Observed(StrictBackend(), a, b)
    ticket = backend.lane("forward").record(1)
    backend.lane("schedule").wait(ticket)
    assert (a.seen, b.seen) == (["a"], ["b"])
    other = Observed(StrictBackend(), Labels("c"))
    with pytest.raises(FenceError):
        other.lane("schedule").wait(ticket)  # recorded elsewhere


def test_a_forward_with_a_marker_for_each_launch_gives_the_ticket_of_the_last() -> None:
    """As one does that is captured several times, to be timed."""
    cell, small = decode_cell("captured"), small_model()
    rig = Rig(StrictBackend(), small)
    inner = rig.planned(cell)[0].forward

    class Copies:
        """The forward, with a fresh marker at each replay."""

        program, gates, marker = inner.program, inner.gates, Marker("swa_translate")

        def load_batch(self, batch: Any, launch: int) -> None:
            inner.load_batch(batch, launch)

        def replay(self, launch: int) -> None:
            inner.replay(launch)
            assert inner.marker is not None
            self.marker = Marker("swa_translate")
            self.marker.issued(launch, inner.marker.ticket(launch).source)

        def tail(self, launch: int) -> Any:
            return inner.tail(launch)

    observed: Any = ObservedForward(Copies(), Observing(()))  # type: ignore[arg-type]
    for _ in range(2):
        launch = rig.next_launch()
        observed.load_batch(batch_of(cell), launch)
        observed.replay(launch)
        assert observed.marker.ticket(launch).launch == launch
        observed.tail(launch).result()
