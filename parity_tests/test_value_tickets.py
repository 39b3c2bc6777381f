"""Tickets by value: the laws hold, and what is a fault with events is right with values. On lanes and virtual time alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from warfence.backends import load
from warfence.parity.laws import LAWS, Bench, Law
from warfence.parity.mutants import MUTANTS, Mutant, run_mutant
from warfence.parity.scorecard import check_law
from warfence.parity.small import SmallModel

pytestmark = pytest.mark.slow
# Backend, device, and the options with which its in-graph tickets are by value.
BY_VALUE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "strict": ("strict", "cpu", {"ticket": "value"}),
    "strict, at the end of the counter": ("strict", "cpu", {"ticket": "value", "first_count": 2**32 - 2}),
    "torch": ("torch", "cpu", {"ticket": "value"}),
    "jax": ("jax", "cpu", {"tables": "aliased"}),  # the marker is then a word
    "torch on a GPU": ("torch", "cuda", {"ticket": "value"}),
}
TICKETS = ("1-", "2-", "4-", "5-", "6-", "7-", "11-", "14-", "15-")


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.gpu] * ("GPU" in name)) for name in BY_VALUE],
)
def bench(request: pytest.FixtureRequest, small: SmallModel) -> Iterator[Bench]:
    name, device, options = BY_VALUE[request.param]
    if name != "strict":
        pytest.importorskip(name)
    made = Bench(lambda: load(name)(device=device, **options), small)
    yield made
    made.discard()


@pytest.mark.parametrize("law", [law for law in LAWS if law.id.startswith(TICKETS)], ids=lambda law: law.id)
def test_law_holds_by_value(bench: Bench, law: Law) -> None:
    result = check_law(law, bench)
    assert result.outcome == "held", result.message


@pytest.mark.parametrize(
    "mutant", [m for m in MUTANTS if m.law in ("4-one-launch", "5-after-its-launch")], ids=lambda m: m.id
)
def test_a_fault_with_events_is_right_by_value(bench: Bench, small: SmallModel, mutant: Mutant) -> None:
    assert bench.rig.backend.capabilities.value_tickets
    result = run_mutant(mutant, bench, lambda: bench.rig.backend, small)
    assert result.right is mutant.right_by_value
    assert result.ok, result.message
    bench.discard()
