"""An attention kind of an installed package: listed, measured as the built-in ones are, and refused where it lies."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from warfence.core import attention
from warfence.core.attention import (
    CAPTURED,
    LIVE,
    SNAPSHOT,
    AttentionKind,
    Child,
    MetadataPlace,
    attention_names,
    make_attention,
    register_attention,
)
from warfence.core.errors import InputError
from warfence.core.modes import SharedReadEnds
from warfence.parity.cells import FINE, MODES, Cell, matrix, mode_cases
from warfence.parity.matrix import Rig, run_cell
from warfence.parity.small import SmallModel, small_model
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.model.program import sliding_layers

EARLY = Child("early", MetadataPlace.EACH_LAYER, SNAPSHOT.declared)
HEAD_AND_LAYERS = AttentionKind("head-and-layers", CAPTURED, LIVE)
LIAR = AttentionKind("liar", SNAPSHOT, EARLY)
MISNAMED = AttentionKind("another-name", CAPTURED, CAPTURED)
NO_KIND = 42


def install(monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    """Pretend that a package with these entry points is installed."""
    made = EntryPoints(
        EntryPoint(name.replace("_", "-"), f"{__name__}:{value}", attention.GROUP) for name, value in points.items()
    )
    monkeypatch.setattr(attention, "entry_points", lambda group: made.select(group=group))


@pytest.fixture(scope="module")
def small() -> SmallModel:
    return small_model()


def test_it_is_listed_and_has_cells_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    built_in = len(list(matrix()))
    install(monkeypatch, head_and_layers="HEAD_AND_LAYERS")
    assert attention.GROUP == "warfence.attention_kinds"
    assert attention_names()[-1] == "head-and-layers"
    ours = [cell for cell in matrix() if cell.attention == "head-and-layers"]
    assert len(list(matrix())) == built_in + len(ours)
    assert {cell.mode.name for cell in ours} == {case.name for case in mode_cases()}


def test_parity_measures_it_as_the_built_in_ones(monkeypatch: pytest.MonkeyPatch, small: SmallModel) -> None:
    install(monkeypatch, head_and_layers="HEAD_AND_LAYERS")
    result = run_cell({"strict": Rig(StrictBackend(), small)}, Cell(MODES[0], "head-and-layers", True, FINE, 1))
    release = result.release["strict"]
    assert release is not None
    assert result.ok
    assert (result.policy, result.boundary) == ("in_graph", release.landed)
    assert release.landed == make_attention("head-and-layers", sliding_layers(small.config)).last_reader(MODES[0].mode)


def test_one_that_says_it_reads_earlier_is_found_out(monkeypatch: pytest.MonkeyPatch, small: SmallModel) -> None:
    install(monkeypatch, liar="LIAR")
    assert make_attention("liar", (1,)).shared_read_ends(MODES[0].mode) is SharedReadEnds.PRE_REPLAY
    result = run_cell({"strict": Rig(StrictBackend(), small)}, Cell(MODES[0], "liar", True, FINE, 1))
    assert not result.sound
    assert not result.ok


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("MISNAMED", r"gives AttentionKind\(name='another-name'.*must give a AttentionKind named 'theirs'"),
        ("NO_KIND", "gives 42; the package 'tests' must give"),
        ("ABSENT", r"cannot be loaded from '.*:ABSENT' \(AttributeError: .*; mend or uninstall the package 'tests'"),
    ],
)
def test_an_entry_point_that_gives_no_kind_is_told(monkeypatch: pytest.MonkeyPatch, value: str, message: str) -> None:
    install(monkeypatch, theirs=value)
    with pytest.raises(InputError, match=f"entry point 'theirs' of group warfence.attention_kinds {message}"):
        make_attention("theirs", ())


def test_a_name_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_REGISTRY", dict(attention._REGISTRY))
    register_attention(HEAD_AND_LAYERS)
    assert attention_names()[-1] == "head-and-layers"
    for kind in (HEAD_AND_LAYERS, AttentionKind("captured", LIVE, LIVE)):
        with pytest.raises(InputError, match=f"'{kind.name}' is registered already; choose another name"):
            register_attention(kind)


def test_a_built_in_kind_does_not_look_through_the_installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "entry_points", lambda group: pytest.fail("tens of milliseconds for each cell"))
    assert attention.make_attention("captured", ()).name == "captured"
