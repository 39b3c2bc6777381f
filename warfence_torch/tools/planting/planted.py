"""A function with its marker planted: what both devices have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch

from warfence.core.backend import Marker
from warfence.core.fence import Ticket
from warfence.parity.boundary import Boundary

LIMITS = (
    "not seen: other threads; kernels launched without torch from pointers that were taken before the function began"
)


class Planted(ABC):
    """One function over static tensors, captured with its read-done marker behind its last shared read.

    boundary: what was found. output: what the function returns; each replay renews the contents of its tensors, which are
    legal to read behind the replay. graph: the CUDA graph; None on the CPU.

    It is legal to write the shared tensors behind the ticket of the last launch, and any other tensor of the function
    behind its replay.
    """

    graph: torch.cuda.CUDAGraph | None = None

    def __init__(self, boundary: Boundary, output: Any, notes: list[str]) -> None:
        self.boundary = boundary
        self.output = output
        self._notes = notes
        self._marker = Marker(str(boundary.after) if boundary.after is not None else "the start")

    @abstractmethod
    def replay(self, lane: Any, launch: int) -> None:
        """Issue one launch on a lane of this device (`WorkerLane` or `CudaLane`) and return at once.

        One launch after the other: the tensors are static, so two lanes must not run the same function together.
        """

    def ticket(self, launch: int) -> Ticket:
        """The read-done promise of the launch just issued. FenceError before its replay, and for any other launch."""
        return self._marker.ticket(launch)

    def report(self) -> list[str]:
        """Lines: each shared read with operation, cells and code lines; what decided; what could not be seen."""
        return [*self.boundary.lines(), *self._notes, LIMITS]
