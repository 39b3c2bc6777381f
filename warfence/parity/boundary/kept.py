"""Boundaries that were found already. Engines are made again and again of few programs, and a trace takes a while."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from warfence.core.program import ForwardProgram
from warfence.parity.boundary.find import Boundary

MOST = 512


class Kept:
    """What was found, by program and the shapes of its tables."""

    def __init__(self) -> None:
        self._found: dict[tuple[ForwardProgram, tuple[tuple[str, tuple[int, ...]], ...]], Boundary] = {}

    def find(
        self, program: ForwardProgram, shapes: Mapping[str, tuple[int, ...]], trace: Callable[[], Boundary]
    ) -> Boundary:
        """The boundary of the program over tables of these shapes: as it was found before, or by tracing now."""
        key = (program, tuple(shapes.items()))
        if key not in self._found:
            if len(self._found) >= MOST:
                self._found.clear()
            self._found[key] = trace()
        return self._found[key]
