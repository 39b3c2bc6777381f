"""A function with its marker planted: what both devices have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from warfence.core.backend import Marker
from warfence.core.errors import InputError
from warfence.core.fence import Ticket
from warfence.core.gates import Gates
from warfence.parity.boundary import Boundary
from warfence_torch.tools.accesses import tensors
from warfence_torch.tools.planting.shared import SharedTensors

PLAIN_RESULTS = (torch.Tensor, int, float, complex, str, bytes, type(None))


class Planted(ABC):
    """One function over static tensors, captured with its read-done marker behind its last shared read.

    boundary: what was found. output: what the function returns; each replay renews the contents of its tensors, which are
    legal to read behind the replay. graph: the CUDA graph; None on the CPU. gates: those that it was planted with, if any.

    It is legal to write the shared tensors behind the ticket of the last launch, and any other tensor of the function
    behind its replay.
    """

    graph: torch.cuda.CUDAGraph | None = None
    gates: Gates | None = None

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
        return [*self.boundary.lines(), *self._notes]


def refuse_view(output: Any, shared: SharedTensors) -> None:
    """InputError when a result is a view of a shared tensor."""
    for i, t in enumerate(tensors(tree_leaves(output))):
        if on := shared.of(t):
            raise InputError(
                f"result {i} of the function is a view of {on[0]}, which is shared: it would change under the reader's "
                f"hands; return a copy (clone())"
            )


def refuse_hidden(output: Any) -> None:
    """InputError when a result may hold tensors where nobody finds them, so that no replay could renew them."""
    for i, leaf in enumerate(tree_leaves(output)):
        if not isinstance(leaf, PLAIN_RESULTS):
            raise InputError(
                f"result {i} of the function is of type {type(leaf).__name__}, in which tensors are not found, so no replay "
                f"could renew them; return tensors, in lists, tuples or dicts, or register it as a pytree node"
            )
