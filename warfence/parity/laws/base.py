"""What a law is, and the bench on which its check runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

from warfence.core.backend import FORWARD, PLAN, SCHEDULE, Backend, Lane
from warfence.core.errors import WarfenceError
from warfence.core.modes import ForwardMode
from warfence.parity.cells import FINE, MODES, Cell, mode_cases
from warfence.parity.rig import Rig
from warfence.parity.small import SmallModel, make_engine, small_model
from warfence.serve.engine import Engine

MakeBackend = Callable[[], Backend]
DECODE = MODES[0]


class LawBroken(WarfenceError):
    """A law does not hold; the message is a sentence that says what was seen."""


def require(holds: bool, sentence: str) -> None:
    """Raise LawBroken with the sentence unless it holds."""
    if not holds:
        raise LawBroken(sentence)


class Bench:
    """Backends to check laws on: a gated rig for single launches and an engine for whole runs, made when first used.

    A law that fails may leave lanes that are of no use any more; `discard` throws them away.
    """

    def __init__(self, make_backend: MakeBackend, small: SmallModel | None = None) -> None:
        self._make_backend = make_backend
        self.small = small or small_model()
        self._rig: Rig | None = None
        self._engine: Engine | None = None
        self._spec_engine: Engine | None = None

    @property
    def rig(self) -> Rig:
        if self._rig is None:
            self._rig = Rig(self._make_backend(), self.small)
        return self._rig

    def another_rig(self) -> Rig:
        """One on a backend of its own, for a check that does something to it. Whoever asks closes its backend."""
        return Rig(self._make_backend(), self.small)

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            self._engine = make_engine(self.small, self._make_backend(), attention="captured")
        return self._engine

    @property
    def spec_engine(self) -> Engine:
        """An engine that speculates with a draft of its own: two runners, three lanes. Small, since it is compiled for this."""
        if self._spec_engine is None:
            self._spec_engine = make_engine(self.small, self._make_backend(), "eagle", rows=1, extend_rows=1)
        return self._spec_engine

    @property
    def schedule(self) -> Lane:
        return self.rig.backend.lane(SCHEDULE)

    @property
    def forward(self) -> Lane:
        return self.rig.backend.lane(FORWARD)

    @property
    def plan(self) -> Lane:
        return self.rig.backend.lane(PLAN)

    def discard(self) -> None:
        """End what was made; the next use makes it anew."""
        if self._rig is not None:
            self._rig.backend.close()
        for engine in (self._engine, self._spec_engine):
            if engine is not None:
                engine.backend.close()
        self._rig = self._engine = self._spec_engine = None


@dataclass(frozen=True, slots=True)
class Law:
    """One law: its check raises LawBroken (or any error) when it does not hold. `needs`: capabilities it cannot do without."""

    id: str
    sentence: str
    source: str
    check: Callable[[Bench], None]
    needs: tuple[str, ...] = ()


def speculative_cells(attention: str, marker: bool = True) -> list[Cell]:
    """One row of every mode in which an algorithm speculates, behind a fine fence; plug-in algorithms included."""
    modes = (ForwardMode.TARGET_VERIFY, ForwardMode.DRAFT_EXTEND)
    return [Cell(case, attention, marker, FINE, 1) for case in mode_cases() if case.mode in modes]


def decode_cell(attention: str, marker: bool = True) -> Cell:
    """The cell that most checks hold: one decode row behind a fine fence."""
    return Cell(DECODE, attention, marker, FINE, 1)


@contextmanager
def host_order(backend: Backend, *things: tuple[object, str, str]) -> Iterator[list[str]]:
    """A list that fills with labels in the order in which the host calls methods. things: (object, method, label)."""
    notes: list[str] = []
    with_patches = []
    for thing, method, label in things:
        original = getattr(thing, method)

        def noted(
            *args: object, _original: Callable[..., object] = original, _label: str = label, **kw: object
        ) -> object:
            notes.append(_label)
            return _original(*args, **kw)

        with_patches.append(mock.patch.object(thing, method, noted))
    for patch in with_patches:
        patch.start()
    try:
        yield notes
    finally:
        for patch in with_patches:
            patch.stop()
