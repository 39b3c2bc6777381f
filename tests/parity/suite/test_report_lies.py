"""A capability that is declared and not met fails its cell; one that is said to be absent does not; what dies is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from warfence.core.program import ForwardProgram
from warfence.parity.cells import DONATION, FINE, MODES, Cell
from warfence.parity.honesty import release_lies, what_failed
from warfence.parity.kernels import KERNELS
from warfence.parity.matrix import CellResult, Rig, run_cell
from warfence.parity.probe import Release
from warfence.parity.rig import program_of
from warfence.parity.small import SmallModel, small_model
from warfence.parity.strict.backend import StrictBackend

FINE_CELL, UNFENCED = (Cell(MODES[0], "live", True, fence, 1) for fence in (FINE, DONATION))


class Altered(StrictBackend):
    """The strict backend with other claims, or a compile that leaves something out."""

    claims: ClassVar[dict[str, Any]] = {}
    leaves_out: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.capabilities = replace(self.capabilities, **self.claims)

    def compile(self, program: ForwardProgram, **asked: Any) -> Any:
        return super().compile(program, **{key: value for key, value in asked.items() if key not in self.leaves_out})


def altered(leaves_out: tuple[str, ...] = (), **claims: Any) -> type[Altered]:
    return type("Made", (Altered,), {"claims": claims, "leaves_out": leaves_out})


@pytest.fixture(scope="module")
def small() -> SmallModel:
    return small_model()


@pytest.fixture
def run(small: SmallModel) -> Callable[..., CellResult]:
    """One cell on the strict backend beside another."""

    def go(make: Callable[..., Any], cell: Cell = FINE_CELL) -> CellResult:
        return run_cell({"strict": Rig(StrictBackend(), small), "other": Rig(make(), small)}, cell)

    return go


@pytest.mark.parametrize(
    ("made", "cell", "sentence"),
    [
        (
            altered(leaves_out=("marker_after",)),
            FINE_CELL,
            "declares external_markers, but 'decode/live/1x1' compiled with",
        ),
        (
            altered(leaves_out=("gated",)),
            FINE_CELL,
            "declares gates, but 'decode/live/1x1' compiled with gated=True has no",
        ),
        (altered(guards_writes=True), UNFENCED, "declares guards_writes, but without a barrier a write landed with"),
    ],
)
def test_a_lie_fails_the_cell_with_a_sentence(
    run: Callable[..., CellResult], made: type[Altered], cell: Cell, sentence: str
) -> None:
    result = run(made, cell)
    assert not result.ok
    assert sentence in result.notes["other"]


def test_precision_that_is_declared_is_held_against_the_release(small: SmallModel) -> None:
    program, _ = program_of(FINE_CELL, small.config)
    said = StrictBackend().capabilities
    late, boundary = Release("swa_translate.2", "end"), "swa_translate.2"
    assert "declares precise_release, but 'decode/live/1x1' lets a write land only at 'end'" in str(
        release_lies(said, FINE_CELL, program, late, boundary)
    )
    modest = replace(said, precise_release=False)
    assert release_lies(modest, FINE_CELL, program, late, boundary) is None
    assert release_lies(said, FINE_CELL, program, Release("end", "end"), boundary) is None, "there the barrier is late"


def test_without_markers_the_cell_degrades_and_is_not_compared(run: Callable[..., CellResult]) -> None:
    result = run(lambda: StrictBackend(external_markers=False))
    assert result.ok
    assert result.release["other"] == Release("sample", "sample")
    assert result.notes == {"other": "policy post_replay instead of in_graph: switched off"}
    assert result.compared == ["strict"]


def test_without_gates_nothing_is_measured_and_nothing_fails(run: Callable[..., CellResult]) -> None:
    result = run(altered(leaves_out=("gated",), gates=False, reasons={"gates": "no hook"}))
    assert result.ok
    assert (result.release["other"], result.notes["other"]) == (None, "no hook")


def test_what_cannot_be_precise_says_so(run: Callable[..., CellResult], monkeypatch: pytest.MonkeyPatch) -> None:
    """The strict backend is precise, so a measured release plays one that is not."""
    from warfence.parity.probe import Prober

    monkeypatch.setattr(Prober, "release", lambda self, fence: Release("swa_translate.2", "end"))
    result = run(altered(precise_release=False, reasons={"precise_release": "the table lives on the device"}))
    assert result.notes["other"] == "the table lives on the device"
    assert "declares precise_release" in result.notes["strict"]
    assert result.compared == []


def test_a_forward_that_dies_fails_its_cell_and_the_next_runs_on_a_fresh_rig(small: SmallModel) -> None:
    calls: list[int] = []

    def logits(env: Any, attrs: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("a NaN")
        return KERNELS["logits"](env, attrs)

    def make() -> StrictBackend:
        return StrictBackend(kernels=dict(KERNELS) | {"logits": logits})

    rig = Rig(make(), small, make)
    first = rig.backend
    died = run_cell({"other": rig}, FINE_CELL)
    assert not died.ok
    assert died.failed == ["other"]
    assert "stage 'logits': ValueError: a NaN" in died.notes["other"]
    assert rig.backend is not first
    assert run_cell({"other": rig}, FINE_CELL).ok


def test_a_rig_that_lives_is_kept(small: SmallModel) -> None:
    rig = Rig(StrictBackend(), small, StrictBackend)
    backend = rig.backend
    rig.renew()
    assert rig.backend is backend


def test_an_unforeseen_error_says_where_it_came_from() -> None:
    with pytest.raises(KeyError) as raised:
        {}["key"]
    assert what_failed(raised.value).startswith("KeyError: 'key' (test_report_lies.py, line ")
