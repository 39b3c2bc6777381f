"""Forwards and outputs of an observed backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from warfence.core.backend import Forward, Marker, Outputs
from warfence.core.batch import Batch
from warfence.core.fence import Ticket
from warfence.core.gates import Gates
from warfence.core.program import ForwardProgram
from warfence.races.check.places import call_site
from warfence.show.observe.observer import Call
from warfence.show.observe.source import ObservedSource, Observing


class ObservedMarker(Marker):
    """The marker of the forward inside; what it refuses is refused, and a ticket by value comes as early as there.

    A forward may have another marker for each launch, so it is asked for its marker each time.
    """

    def __init__(self, forward: Forward, marker: Marker, observing: Observing) -> None:
        super().__init__(marker.stage)
        self.word = marker.word
        self._forward, self._observing = forward, observing
        self._labels: tuple[int, tuple[Any, ...]] = (0, ())
        self._ahead: list[ObservedSource] = []  # of tickets by value that were taken before their launch

    def observed(self, launch: int, labels: tuple[Any, ...]) -> None:
        """The launch was issued, and its marker is armed. labels: what the observers call it."""
        self._labels = launch, labels
        for source in self._ahead:
            if source.launch == launch:
                source.labels = labels
        self._ahead = [source for source in self._ahead if source.launch > launch]

    def ticket(self, launch: int) -> Ticket:
        assert self._forward.marker is not None
        source = self._forward.marker.ticket(launch).source
        known, labels = self._labels
        labels = labels if known == launch else (None,) * len(self._observing.observers)
        observed = ObservedSource(source, launch, labels, self._observing)
        if launch > known:
            self._ahead.append(observed)
        return Ticket(launch, observed)


class ObservedOutputs:
    """Implements `warfence.core.backend.Outputs`."""

    def __init__(self, inner: Outputs, observing: Observing) -> None:
        self.launch, self._inner, self._observing = inner.launch, inner, observing

    @property
    def device_s(self) -> float | None:
        return self._inner.device_s

    def result(self) -> Mapping[str, np.ndarray]:
        return self._observing.tell(Call("result", call_site(2), self.launch), self._inner.result)[0]


class ObservedForward:
    """Implements `warfence.core.backend.Forward`. It has a marker and gates where the inner one has."""

    def __init__(self, inner: Forward, observing: Observing) -> None:
        self._inner, self._observing = inner, observing
        self._marker = ObservedMarker(inner, inner.marker, observing) if inner.marker is not None else None

    @property
    def program(self) -> ForwardProgram:
        return self._inner.program

    @property
    def marker(self) -> Marker | None:
        return self._marker

    @property
    def gates(self) -> Gates | None:
        return self._inner.gates

    def load_batch(self, batch: Batch, launch: int) -> None:
        call = Call("load_batch", call_site(2), launch, batch=batch, forward=self._inner)
        self._observing.tell(call, lambda: self._inner.load_batch(batch, launch))

    def replay(self, launch: int) -> None:
        call = Call("replay", call_site(2), launch, forward=self._inner)

        def replay() -> None:
            self._inner.replay(launch)
            if self._inner.marker is not None:
                call.source = self._inner.marker.ticket(launch).source

        _, labels = self._observing.tell(call, replay)
        if self._marker is not None:
            self._marker.observed(launch, labels)

    def tail(self, launch: int) -> ObservedOutputs:
        call = Call("tail", call_site(2), launch, forward=self._inner)
        return ObservedOutputs(self._observing.tell(call, lambda: self._inner.tail(launch))[0], self._observing)
