"""Where the historical rule sets differ from ours: what is called unsound is measured to be, and nothing else is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from warfence.cli.rule_sets import OURS, RuleDifference, alike, differences, folded, launch_cases
from warfence.core.modes import ForwardMode, Region, SharedReadEnds
from warfence.core.policy import decide
from warfence.parity.cells import FINE, MODES, Cell
from warfence.parity.history import RULE_SETS
from warfence.parity.matrix import run_cell
from warfence.parity.rig import Rig
from warfence.parity.small import small_model
from warfence.parity.strict.backend import StrictBackend

HISTORICAL = [names[0] for names in alike()]


def test_ours_differ_from_themselves_nowhere_and_are_sound() -> None:
    assert differences(OURS, prefill=True) == []
    assert not any(case.unsound(decide(case.query).policy) for case in launch_cases(prefill=True))


def test_launches_that_no_step_has_are_left_out() -> None:
    modes = {
        name: {c.mode for c in launch_cases() if c.algorithm.name == name}
        for name in ("none", "ngram", "dflash", "eagle")
    }
    assert ForwardMode.TARGET_VERIFY not in modes["none"]
    assert modes["eagle"] - modes["dflash"] == {ForwardMode.DRAFT_EXTEND}
    assert modes["ngram"] == modes["dflash"]
    assert modes["none"] == modes["ngram"] - {ForwardMode.TARGET_VERIFY}


@pytest.mark.parametrize("name", HISTORICAL)
def test_the_folded_table_says_all_of_it(name: str) -> None:
    found = differences(name, prefill=True)
    sizes = Counter[str]()
    for _, attention, spec, marker, _, _, verdict in folded(found):
        sizes[verdict] += len(attention.split(", ")) * len(spec.split(", ")) * len(marker.split(", "))
    assert sizes == Counter(one.verdict for one in found)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    backend = StrictBackend()
    yield Rig(backend, small_model())
    backend.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", HISTORICAL)
def test_what_is_called_unsound_is_measured_to_be(rig: Rig, name: str) -> None:
    found = [(cell, one) for one in differences(name) if (cell := cell_of(one)) is not None]
    assert any(one.verdict == "UNSOUND" for _, one in found)
    for cell, one in found:
        if one.verdict == "never taken":
            continue  # a cell is one launch, and its ticket the one that is taken
        result = run_cell({"strict": rig}, cell, planted(rig, one, cell), RULE_SETS[name])
        assert not result.failed, result.notes
        assert result.sound == (one.verdict != "UNSOUND"), (one, result.release)


def cell_of(one: RuleDifference) -> Cell | None:
    """The cell of the matrix that has such a launch; None where there is none (a plain decode of n-grams)."""
    case = one.case
    for mode in MODES:
        if (mode.mode, mode.spec, mode.prefill_enabled) == (case.mode, case.algorithm.name, case.prefill):
            return Cell(mode, case.attention, case.marker, FINE, 1)
    return None


def planted(rig: Rig, one: RuleDifference, cell: Cell) -> str | None:
    """Where a marker is planted by hand, because ours plants none: the first rules trust any."""
    if not one.case.marker or one.case.query.declared is SharedReadEnds.IN_GRAPH:
        return None
    return rig.planned(cell)[0].forward.program.region(Region.REPLAY)[0].name
