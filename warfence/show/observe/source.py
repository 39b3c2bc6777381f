"""How observers are told of a call, and ticket sources that carry what each observer calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from warfence.core.fence import TicketSource
from warfence.races.check.places import call_site
from warfence.show.observe.observer import Call, Observer

R = TypeVar("R")


class Observing:
    """Tells all observers of a call."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = tuple(observers)

    def tell(self, call: Call, make: Callable[[], R], given: ObservedSource | None = None) -> tuple[R, tuple[Any, ...]]:
        """Make the call between `before` and `after` of each observer; its result, and what each `after` returned."""
        labels = given.labels if given is not None and given.observing is self else (None,) * len(self.observers)
        begun = []
        for observer, label in zip(self.observers, labels, strict=True):
            call.label = label
            begun.append(observer.before(call))
        try:
            result = make()
        except BaseException as error:
            call.error = error
            self._after(call, begun, labels)
            raise
        if isinstance(result, bool):
            call.answer = result
        return result, self._after(call, begun, labels)

    def _after(self, call: Call, begun: Sequence[Any], labels: Sequence[Any]) -> tuple[Any, ...]:
        made = []
        for observer, one, label in zip(self.observers, begun, labels, strict=True):
            call.label = label
            made.append(observer.after(call, one))
        return tuple(made)


class ObservedSource:
    """Implements `warfence.core.fence.TicketSource` around a backend's own. labels: one of each observer."""

    __slots__ = ("inner", "labels", "launch", "observing")

    def __init__(self, inner: TicketSource, launch: int, labels: tuple[Any, ...], observing: Observing) -> None:
        self.inner, self.launch, self.labels, self.observing = inner, launch, labels, observing

    def recorded_for(self) -> int | None:
        return self.inner.recorded_for()

    def done(self) -> bool:
        call = Call("source_done", call_site(2), self.launch, source=self.inner)
        return self.observing.tell(call, self.inner.done, self)[0]

    def synchronize(self) -> None:
        call = Call("source_synchronize", call_site(2), self.launch, source=self.inner)
        self.observing.tell(call, self.inner.synchronize, self)
