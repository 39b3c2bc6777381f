"""A trial of the parity suite as a timeline: the forward is held at a gate behind its read boundary, and a write comes."""

from __future__ import annotations

from collections.abc import Iterable

from warfence.core.backend import Backend
from warfence.core.errors import InputError
from warfence.parity.cells import FENCES, FINE, Cell
from warfence.parity.rig import Rig
from warfence.parity.small import SmallModel
from warfence.show.observe import Observed, Tracer
from warfence.show.timeline.build import timeline
from warfence.show.timeline.model import Timeline


def first_fine(cells: Iterable[Cell]) -> Cell:
    """The first cell that reads shared tables and has a fine fence. InputError where none is among them."""
    for cell in cells:
        if cell.fence == FINE and cell.marker:
            return cell
    raise InputError("--timeline shows a cell with a fine fence and a marker; none was chosen")


def trace_trial(backend: Backend, small: SmallModel, cell: Cell) -> Timeline:
    """One launch of the cell, held right behind its read boundary until a table write was tried. Closes the backend.

    InputError for a backend that cannot tell when its stages run, or for a cell that reads no shared table.
    """
    try:
        tracer = Tracer()
        rig = Rig(Observed(backend, tracer), small)
        prober = rig.prober(cell)
        boundary = rig.planned(cell)[0].forward.program.read_boundary()
        if boundary is None:
            raise InputError(f"cell '{cell.name}' reads no shared table, so nothing is held behind its boundary")
        tracer.start()
        prober.trial(boundary.name, FENCES[cell.fence])
        return timeline(tracer, f"{backend.name} on {backend.device}: {cell.name}, held behind '{boundary.name}'")
    finally:
        backend.close()
