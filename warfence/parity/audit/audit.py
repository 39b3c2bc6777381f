"""Compares, for every mode and attention backend, where shared reads are declared to end, found to end, and seen to end.

declared: by the stages of the program, and by the attention backend and the algorithm, from which the policy follows.
found: by tracing the kernels. graph: by the nodes of the captured graph, where there are graphs. measured: by overwriting the
tables under a forward that is held. All must be equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from warfence.core.abilities import FindsBoundary, ReadsGraph, SaysCompiled, disagreement
from warfence.core.errors import WarfenceError
from warfence.core.forwards import PlannedForward
from warfence.core.modes import ForwardMode
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN, ForwardProgram
from warfence.parity.audit.last_read import LastRead
from warfence.parity.audit.scene import Scene
from warfence.parity.cells import FINE, Cell, matrix, mode_cases
from warfence.parity.rig import Rig, program_of

NONE = "none"  # no stage reads a shared table
NOT_TRACED = "it does not trace its kernels (no find_boundary): trusted with what is declared"


@dataclass(slots=True)
class Audited:
    """One mode under one attention backend. found, graph, compiled, measured: a stage by backend, "none" where nothing is read.

    ends: what the attention backend declares. boundary: the last stage of the program that declares a read. policy: what
    follows from the declarations. problems: sentences, empty when all is equal. notes: what a backend cannot do.
    """

    mode: str
    attention: str
    ends: str
    boundary: str
    policy: str
    found: dict[str, str] = field(default_factory=dict)
    graph: dict[str, str] = field(default_factory=dict)
    measured: dict[str, str] = field(default_factory=dict)
    compiled: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return asdict(self)


def cells(modes: Sequence[str] = (), attentions: Sequence[str] = ()) -> list[Cell]:
    """What is audited: each mode and attention backend once, with its marker."""
    every = matrix(tuple(modes), tuple(attentions))
    return [cell for cell in every if cell.marker and cell.fence == FINE and cell.batch == 1]


def audit_cell(rigs: Mapping[str, Rig], cell: Cell, measure: bool = True) -> Audited:
    """Audit one cell on every backend. What a backend fails to do is a problem of the cell."""
    program, fence = program_of(cell, next(iter(rigs.values())).small.config)
    declared, marker = program.read_boundary(), fence.marker_stage(cell.mode.mode)
    decision = fence.decide(cell.mode.mode, marker is not None)
    ends = fence.query(cell.mode.mode, True).declared
    boundary = declared.name if declared is not None else NONE
    result = Audited(cell.mode.name, cell.attention, ends.name.lower(), boundary, decision.policy.value)
    for name, rig in rigs.items():
        try:
            if isinstance(rig.backend, FindsBoundary):
                found = rig.backend.find_boundary(program)
                result.found[name] = found.stage or NONE
                if result.found[name] != boundary:
                    last = f"; that is at {found.place}" if found.place else ""
                    result.problems.append(
                        f"{name}: '{result.found[name]}' is found to read last, declared is '{boundary}'{last}"
                    )
                if wrong := disagreement(program, found, decision.policy, marker):
                    result.problems.append(f"{name}: {wrong}")
            else:
                result.notes[name] = NOT_TRACED
            if isinstance(rig.backend, ReadsGraph) and (seen := rig.backend.graph_boundary(program)) is not None:
                result.graph[name] = seen.stage or NONE
                if result.graph[name] != boundary:
                    result.problems.append(
                        f"{name}: '{result.graph[name]}' is the last in the graph to hold a table, declared is '{boundary}'"
                    )
            _compiled(result, name, rig, cell, program)
            if measure:
                _measure(result, name, rig, cell, program)
        except (WarfenceError, RuntimeError) as error:
            result.problems.append(f"{name}: {error}")
            rig.renew()
    return result


def _compiled(result: Audited, name: str, rig: Rig, cell: Cell, program: ForwardProgram) -> None:
    """What the compiled modules say, where there are some. Earlier than declared is no fault: equal reads became one."""
    if not isinstance(rig.backend, SaysCompiled):
        return
    seen = rig.backend.compiled_boundary(rig.planned(cell)[0].forward)
    result.compiled[name] = seen or NONE
    if seen is not None and (result.boundary == NONE or program.index(seen) > program.index(result.boundary)):
        result.problems.append(
            f"{name}: the compiled modules read up to and with '{seen}', declared is '{result.boundary}'"
        )


def _measure(result: Audited, name: str, rig: Rig, cell: Cell, program: ForwardProgram) -> None:
    said = rig.backend.capabilities
    if not said.gates or said.guards_writes:
        why = "it has no gates" if not said.gates else "its runtime guards the tables, so nothing can be overwritten"
        result.notes[name] = f"not measured: {why}"
        return
    planned, _ = rig.planned(cell)
    tables = {table: rig.tables.snapshot_to_host(table) for table in (REQ_TO_TOKEN, FULL_TO_SWA)}
    scene = Scene(cell, tables)
    try:
        measured = LastRead(rig.fixture, planned, scene, _first(rig, cell)).stage() or NONE
    finally:
        rig.fill_tables()
    result.measured[name] = measured
    if measured != result.boundary:
        late = f"overwriting the tables shows up to and with '{measured}'"
        result.problems.append(f"{name}: {late}, declared is '{result.boundary}'")


def _first(rig: Rig, cell: Cell) -> PlannedForward | None:
    """The verify that a draft's own launch works behind; None for every other mode."""
    if cell.mode.mode is not ForwardMode.DRAFT_EXTEND:
        return None
    for case in mode_cases():
        if case.mode is ForwardMode.TARGET_VERIFY and case.spec == cell.mode.spec:
            return rig.planned(replace(cell, mode=case))[0]
    return None
