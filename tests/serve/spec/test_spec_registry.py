"""Algorithms by name: built in, registered, or from an installed package; and what making one for a model refuses."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from warfence.core.attention import make_attention
from warfence.core.batch import BatchLayout
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode
from warfence.parity.small import BLOCK, SmallModel, small_draft
from warfence.serve.spec import DFLASH, EAGLE, NGRAM, NO_SPEC, Drafting, SpecAlgorithm, get, names, register, registry

INSTALLED = SpecAlgorithm("installed", supports_target_verify_read_done=True)
MISNAMED = SpecAlgorithm("another-name")
NO_ALGORITHM = 42


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    built_in = {a.name: a for a in (NO_SPEC, NGRAM, registry.NGRAM_SNAPSHOT, DFLASH, EAGLE)}
    monkeypatch.setattr(registry, "_REGISTRY", built_in)
    monkeypatch.setattr(registry, "entry_points", lambda group: EntryPoints())


def install(monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    """Pretend that packages with these entry points are installed."""
    made = EntryPoints(EntryPoint(name.replace("_", "-"), value, registry.GROUP) for name, value in points.items())
    other = EntryPoints([EntryPoint("stranger", "nowhere:nothing", "some.other.group")])
    monkeypatch.setattr(registry, "entry_points", lambda group: EntryPoints([*made, *other]).select(group=group))


def test_an_installed_package_brings_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, installed=f"{__name__}:INSTALLED")
    assert names() == ("none", "ngram", "ngram-snapshot", "dflash", "eagle", "installed")
    assert get("installed").supports_target_verify_read_done
    assert registry.GROUP == "warfence.spec_algorithms"


def test_the_built_in_ones_cannot_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, dflash=f"{__name__}:INSTALLED")
    assert get("dflash") is DFLASH
    assert names() == ("none", "ngram", "ngram-snapshot", "dflash", "eagle")
    with pytest.raises(InputError, match="'dflash' is registered already; choose another name"):
        register(SpecAlgorithm("dflash"))


@pytest.mark.parametrize(("name", "gives"), [("MISNAMED", "name='another-name'"), ("NO_ALGORITHM", "gives 42")])
def test_an_entry_point_that_gives_something_else_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, gives: str
) -> None:
    install(monkeypatch, wrong=f"{__name__}:{name}")
    with pytest.raises(InputError, match=rf"entry point 'wrong'.*{gives}.*must give a SpecAlgorithm named 'wrong'"):
        get("wrong")


@pytest.mark.parametrize(
    ("target", "cause"),
    [
        ("no_such_package_anywhere:X", "ModuleNotFoundError: No module named"),
        (f"{__name__}:NoSuchName", "AttributeError"),
    ],
)
def test_an_entry_point_that_cannot_be_loaded_is_told_with_its_cause(
    monkeypatch: pytest.MonkeyPatch, target: str, cause: str
) -> None:
    install(monkeypatch, broken=target)
    with pytest.raises(
        InputError,
        match=rf"'broken' .* loaded from '{re.escape(target)}' \({cause}.*; mend or unin",
    ):
        get("broken")


def test_an_unknown_name_is_told_all_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, installed=f"{__name__}:INSTALLED", other=f"{__name__}:INSTALLED")
    register(SpecAlgorithm("mine"))
    with pytest.raises(
        InputError, match=r"'medusa'; known: none, ngram, ngram-snapshot, dflash, eagle, mine, installed, other$"
    ):
        get("medusa")


# -- one model


def test_none_adds_nothing(small: SmallModel) -> None:
    assert NO_SPEC.drafting(small.config, None, 7) is None


@pytest.mark.parametrize(
    ("spec", "draft", "block", "message"),
    [
        (INSTALLED, None, None, r"'installed' only declares capabilities; it brings nothing to run \(make=None\)"),
        (DFLASH, None, None, "'dflash' needs a draft and there is none for model 'small'; give --draft DIR, or use --spec ngram"),
        (EAGLE, None, 4, "'eagle' needs a draft and there is none for model 'small'"),
        (DFLASH, "dflash", 3, "--block is 3; this draft fills blocks of 4, for which it was trained"),
        (EAGLE, "eagle", 1, "--block is 1; give at least 2: the known token and one proposal"),
        (EAGLE, "eagle", 0, "--block is 0; give at least 2"),
        (NGRAM, None, 1, "--block is 1; give at least 2: the known token and one proposal"),
        (NGRAM, None, 0, "--block is 0; give at least 2"),
        (NGRAM, "eagle", None, "n-grams take no draft; drop --draft"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(
    small: SmallModel, spec: SpecAlgorithm, draft: str | None, block: int | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        spec.drafting(small.config, small_draft(small.config, draft) if draft else None, block)


@pytest.mark.parametrize(
    ("spec", "block", "expected"),
    [
        (DFLASH, None, BLOCK), (DFLASH, BLOCK, BLOCK), (EAGLE, None, BLOCK), (EAGLE, 2, 2), (EAGLE, 9, 9), (NGRAM, None, 6),
        (NGRAM, 2, 2),
    ],
)  # fmt: skip
def test_the_block_is_the_drafts_or_the_algorithms_own_unless_given(
    small: SmallModel, spec: SpecAlgorithm, block: int | None, expected: int
) -> None:
    drafting: Drafting | None = spec.drafting(small.config, small_draft(small.config, spec.name), block)
    assert drafting is not None
    assert drafting.block == expected


@pytest.mark.parametrize(
    ("spec", "why"), [(DFLASH, "proposes inside the verify"), (NGRAM, "in the tail of the verify")]
)
def test_only_an_algorithm_with_such_launches_has_a_draft_extend(
    small: SmallModel, spec: SpecAlgorithm, why: str
) -> None:
    drafting: Any = spec.drafting(small.config, small_draft(small.config, spec.name), None)
    assert all(len(spec.phases(mode)) == 1 for mode in ForwardMode)
    with pytest.raises(InputError, match=f"{spec.name} has no draft extend: .*{why}"):
        drafting.draft_extend(make_attention("captured", ()), BatchLayout(1, BLOCK))
