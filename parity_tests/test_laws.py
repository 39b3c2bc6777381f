"""The laws on the backend under test, and each law's mutant, which it must catch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from warfence.backends import load, package
from warfence.parity.laws import LAWS, Bench, Law
from warfence.parity.mutants import MUTANTS, Mutant, run_mutant
from warfence.parity.scorecard import check_law
from warfence.parity.small import SmallModel

Target = tuple[str, str]
pytestmark = pytest.mark.slow


def make(target: Target, **options: Any) -> Any:
    return load(target[0])(device=target[1], **options)


@pytest.fixture(scope="module")
def bench(target: Target, small: SmallModel) -> Iterator[Bench]:
    made = Bench(lambda: make(target), small)
    yield made
    made.discard()


@pytest.fixture(scope="module")
def unguarded(target: Target, small: SmallModel) -> Iterator[Bench]:
    made = Bench(lambda: make(target, **package(target[0]).unguarded), small)
    yield made
    made.discard()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.id)
def test_law_holds(bench: Bench, law: Law) -> None:
    result = check_law(law, bench)
    if result.outcome == "not applicable":
        pytest.skip(result.message)
    assert result.outcome == "held", result.message


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_mutant_is_caught_by_its_law(unguarded: Bench, target: Target, small: SmallModel, mutant: Mutant) -> None:
    result = run_mutant(mutant, unguarded, lambda: make(target, **package(target[0]).unguarded), small)
    if result.right:
        assert not result.caught, f"'{mutant.sentence}' is right with tickets by value, and broke {result.caught_by}"
    else:
        assert result.right_law, f"'{mutant.sentence}' went unnoticed by law {mutant.law}"
        assert result.message


def test_every_law_has_a_mutant() -> None:
    assert {m.law for m in MUTANTS} == {law.id for law in LAWS}
