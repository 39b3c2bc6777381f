"""The parity matrix on each backend: a write lands where the rules put it, and a marker one stage early shows.

One batch size here, forwards without a marker where that changes the policy, and of the narrow modes two attention
backends; `warfence parity` runs every cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from parity_tests.plugin import targets
from warfence.backends import is_installed, load, package
from warfence.core.backend import Backend
from warfence.parity.cells import BATCHES, FINE, MODES, Cell, matrix
from warfence.parity.matrix import Rig, run_cell
from warfence.parity.report import in_full
from warfence.parity.rig import program_of
from warfence.parity.small import SmallModel

Target = tuple[str, str]
MakeBackend = Callable[..., Backend]
DECODE = MODES[0]
CELLS = [
    cell
    for cell in matrix()
    if cell.batch == BATCHES[0]
    and (cell.marker or (cell.mode is DECODE and cell.fence == FINE))
    and (not cell.mode.narrow or cell.attention in ("captured", "rereading"))
]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rig(target: Target, small: SmallModel) -> Iterator[Rig]:
    def make() -> Backend:
        return load(target[0])(device=target[1])

    made = Rig(make(), small, make)
    yield made
    made.backend.close()


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_a_write_lands_where_the_rules_put_it(rig: Rig, target: Target, cell: Cell) -> None:
    result = run_cell({target[0]: rig}, cell)
    if result.ok and result.release[target[0]] is None:
        pytest.skip(result.notes[target[0]])
    assert result.ok, "\n".join(in_full(result))


@pytest.mark.parametrize("attention", ["captured", "live"])
def test_a_marker_one_stage_early_is_unsound(rig: Rig, target: Target, attention: str) -> None:
    """Also where the runtime then holds the write by itself: the barrier has opened before the read boundary."""
    capabilities = rig.backend.capabilities
    if not (capabilities.external_markers and capabilities.gates):
        pytest.skip(f"no marker or no gates: {dict(capabilities.reasons)}")
    cell = Cell(DECODE, attention, True, FINE, BATCHES[0])
    program, fence = program_of(cell, rig.small.config)
    declared = fence.marker_stage(cell.mode.mode)
    assert declared is not None
    early = program.before(declared)
    result = run_cell({target[0]: rig}, cell, marker_after=early)
    release = result.release[target[0]]
    assert release is not None, in_full(result)
    assert (result.boundary, release.opened) == (declared, early)
    assert not result.sound
    assert not result.ok


@pytest.mark.xdist_group("jax-cpu-rigs")
def test_backends_side_by_side_release_at_the_same_stage(small: SmallModel, pytestconfig: pytest.Config) -> None:
    here = [n for n, d in targets(pytestconfig) if d == "cpu" and is_installed(package(n))]
    if len(here) < 2:
        pytest.skip(f"needs two backends on the CPU; this run has {', '.join(here) or 'none'}")
    rigs = {name: Rig(load(name)(device="cpu"), small) for name in here}
    try:
        for attention in ("snapshot", "captured", "live"):
            result = run_cell(rigs, Cell(DECODE, attention, True, FINE, BATCHES[0]))
            assert list(result.release) == here
            assert result.ok, "\n".join(in_full(result))
            assert {(r.opened, r.landed) for r in result.release.values() if r} == {(result.boundary,) * 2}
    finally:
        for rig in rigs.values():
            rig.backend.close()
