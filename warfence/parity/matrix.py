"""Runs the parity matrix on backends and judges it. No pytest inside; `warfence parity` and the test suite call this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from warfence.core.policy import RULES, Rule
from warfence.core.program import ForwardProgram
from warfence.parity.cells import DONATION, FENCES, FINE, Cell, expected_release
from warfence.parity.honesty import forward_lies, release_lies, what_failed
from warfence.parity.probe import END, Release
from warfence.parity.rig import CONTEXT, SPARE_ROW, MakeBackend, Rig, batch_of, layout, program_of
from warfence.serve.model.config import ModelConfig


@dataclass(slots=True)
class CellResult:
    """One cell on all backends. Boundary, policy and expected release are those of a backend that has what it takes.

    `release[backend]` is None where nothing was measured; `notes` says why, or what else is to be known of that backend.
    failed: backends on which something should have been measured and was not. compared: those that must be equal.
    """

    cell: Cell
    boundary: str
    policy: str
    expected: str
    release: dict[str, Release | None] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    sound: bool = True
    precise: bool = True
    parity: bool = True
    as_expected: bool = True
    failed: list[str] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Sound everywhere, equal everywhere, and where the rules put it; so a fine ticket is precise too."""
        return self.sound and self.parity and self.as_expected

    def fail(self, name: str, why: str) -> None:
        """Nothing was measured on this backend although it should have been, so nothing is claimed of the cell."""
        self.release[name], self.notes[name] = None, why
        self.failed.append(name)
        self.sound = self.precise = self.parity = self.as_expected = False

    def to_json(self) -> dict[str, object]:
        releases = {n: None if r is None else {"opened": r.opened, "landed": r.landed} for n, r in self.release.items()}
        return {
            "mode": self.cell.mode.name, "attention": self.cell.attention, "fence": self.cell.fence,
            "marker": self.cell.marker, "batch": self.cell.batch, "boundary": self.boundary, "policy": self.policy,
            "expected": self.expected, "release": releases, "sound": self.sound, "precise": self.precise,
            "parity": self.parity, "ok": self.ok, "notes": self.notes,
        }  # fmt: skip


def blank(
    cell: Cell, config: ModelConfig, rules: tuple[Rule, ...] = RULES, marker_after: str | None = None
) -> CellResult:
    """The cell with what the rules say about it, and nothing measured yet."""
    program, fence = program_of(cell, config, rules)
    stage = fence.marker_stage(cell.mode.mode)
    policy = fence.decide(cell.mode.mode, (marker_after or stage) is not None).policy
    boundary = program.read_boundary()
    expected = expected_release(cell, program, policy, stage)
    return CellResult(cell, boundary.name if boundary else "none", policy.value, expected)


def run_matrix(rigs: Mapping[str, Rig], cells: Sequence[Cell]) -> Iterator[CellResult]:
    """Probe every cell on every backend; yields one judged result a cell."""
    for rig in rigs.values():
        rig.prepare(cells)
    for cell in cells:
        yield run_cell(rigs, cell)


def run_cell(
    rigs: Mapping[str, Rig], cell: Cell, marker_after: str | None = None, rules: tuple[Rule, ...] = RULES
) -> CellResult:
    """Probe one cell on every backend and judge it. A backend that fails fails the cell; its rig is made anew."""
    assert rigs, "run_cell needs at least one rig"
    result = blank(cell, next(iter(rigs.values())).small.config, rules, marker_after)
    comparable: set[tuple[str, ...]] = set()
    for name, rig in rigs.items():
        try:
            release = probe_cell(result, name, rig, marker_after, rules)
        except Exception as error:  # of a backend under test: whatever it is, it is this cell's result
            result.fail(name, what_failed(error))
            with suppress(Exception):  # the next cell says so
                rig.renew()
            continue
        if release is not None:
            comparable.add(release)
            result.compared.append(name)
    result.parity &= len(comparable) <= 1
    return result


def probe_cell(
    result: CellResult, name: str, rig: Rig, marker_after: str | None = None, rules: tuple[Rule, ...] = RULES
) -> tuple[str, ...] | None:
    """Measure and judge one cell on one backend; returns what must be equal on all backends, None where nothing must.

    What the backend says that it cannot do is left out or degrades, with a note. What it says and does not do fails.
    """
    cell, capabilities = result.cell, rig.backend.capabilities
    if cell.fence == DONATION and not capabilities.guards_writes:
        result.release[name] = None
        result.notes[name] = capabilities.reasons.get("guards_writes", "the runtime guards no write")
        return None
    planned, marker = rig.planned(cell, marker_after, rules)
    program, fence = program_of(cell, rig.small.config, rules)
    wanted = marker_after or fence.marker_stage(cell.mode.mode)
    if lies := forward_lies(capabilities, planned.forward, wanted):
        result.fail(name, lies)
        return None
    if not capabilities.gates:
        result.release[name] = None
        result.notes[name] = capabilities.reasons.get("gates", "it has no gates, so nothing can be measured")
        return None
    release = rig.prober(cell, marker_after, rules).release(FENCES[cell.fence])
    result.release[name] = release
    expected = expected_release(cell, program, planned.decision.policy, marker and fence.marker_stage(cell.mode.mode))
    late_by_nature = cell.fence == FINE and not capabilities.precise_release
    judge(result, program, release, expected, late_by_nature)
    if lies := release_lies(capabilities, cell, program, release, expected):
        result.notes[name], result.as_expected = lies, False
    elif expected != result.expected:
        reason = capabilities.reasons.get("external_markers", "it makes no marker")
        result.notes[name] = f"policy {planned.decision.policy.value} instead of {result.policy}: {reason}"
    elif late_by_nature and release.landed != expected:
        result.notes[name] = capabilities.reasons.get("precise_release", "its runtime cannot be precise")
    else:
        return (release.landed,) if cell.fence == DONATION else (release.opened, release.landed)
    return None


def judge(result: CellResult, program: ForwardProgram, release: Release, expected: str, may_be_late: bool) -> None:
    """Compare a measured release with the boundary (sound, precise) and with the rules (as expected).

    A barrier that opens too early is unsound also where the runtime then holds the write by itself.
    """
    order = [*program.gate_positions(), END]
    boundary = order.index(result.boundary) if result.boundary != "none" else 0
    landed, opened = order.index(release.landed), order.index(release.opened)
    fenced = result.cell.fence != DONATION
    result.sound &= landed >= boundary and (not fenced or opened >= boundary)
    result.precise &= landed == boundary
    # A chain may be cut more often than the marker asks (where the device changes): then a hold ends at the boundary.
    shorter_hold = not fenced and boundary <= landed <= order.index(expected)
    result.as_expected &= may_be_late or shorter_hold or release.landed == expected
    result.as_expected &= not fenced or release.opened == expected


__all__ = [
    "CONTEXT", "SPARE_ROW", "CellResult", "MakeBackend", "Rig", "batch_of", "blank", "layout", "run_cell", "run_matrix",
]  # fmt: skip
