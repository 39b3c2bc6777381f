"""A plug-in algorithm that declares what it does not keep: the matrix calls it unsound, and law 2 breaks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warfence.parity.cells import FINE, Cell, mode_cases
from warfence.parity.laws import LAWS, Bench
from warfence.parity.matrix import Rig, run_cell
from warfence.parity.scorecard import check_law
from warfence.parity.small import SmallModel, small_model
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.spec import NGRAM, registry


@pytest.fixture
def honest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTRY", {**registry._REGISTRY, "mine": replace(NGRAM, name="mine")})


@pytest.fixture
def liar(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads in the tail, behind the verify, and says that its verify is the last reader."""
    lies = replace(NGRAM, name="mine", supports_target_verify_read_done=True)
    monkeypatch.setattr(registry, "_REGISTRY", {**registry._REGISTRY, "mine": lies})


@pytest.fixture(scope="module")
def small() -> SmallModel:
    return small_model()


def cell() -> Cell:
    case = next(case for case in mode_cases() if case.name == "target_verify+mine")
    return Cell(case, "captured", True, FINE, 1)


@pytest.mark.usefixtures("honest")
def test_a_plug_in_is_measured_as_the_built_in_ones_are(small: SmallModel) -> None:
    result = run_cell({"strict": Rig(StrictBackend(), small)}, cell())
    assert result.ok
    assert (result.policy, result.expected) == ("none", "end")


@pytest.mark.usefixtures("liar")
def test_a_capability_that_is_not_kept_is_unsound_and_breaks_a_law(small: SmallModel) -> None:
    result = run_cell({"strict": Rig(StrictBackend(), small)}, cell())
    assert not result.sound
    assert result.boundary == "ngram_page_table"
    law = next(law for law in LAWS if law.id == "2-release-at-boundary")
    seen = check_law(law, Bench(StrictBackend, small))
    assert seen.outcome == "broken"
    assert "reads until 'ngram_page_table' but a write lands at 'swa_translate'" in seen.message
