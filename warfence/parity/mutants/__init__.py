"""Mutants: for each law at least one mistake that it must catch. A law that lets its mutant pass is no law."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warfence.core.backend import Backend
from warfence.parity.laws import LAWS, Bench
from warfence.parity.laws.base import MakeBackend
from warfence.parity.mutants.base import Mutant
from warfence.parity.mutants.neutral import NEUTRAL
from warfence.parity.mutants.spoilt import SPOILT, one_stage_earlier
from warfence.parity.scorecard import check_law
from warfence.parity.small import SmallModel, small_model

MUTANTS: tuple[Mutant, ...] = tuple(
    sorted(NEUTRAL + SPOILT, key=lambda m: [law.id for law in LAWS].index(m.law))
)  # in the order of their laws


@dataclass(frozen=True, slots=True)
class MutantResult:
    """Which laws broke on a mutant. `caught`: any did; `right_law`: the one that is meant to is among them. `right`: none
    may, because the backend's tickets are by value and the mutant is a fault with events only."""

    id: str
    law: str
    sentence: str
    caught: bool
    right_law: bool
    caught_by: tuple[str, ...]
    message: str
    right: bool = False

    @property
    def ok(self) -> bool:
        return not self.caught if self.right else self.right_law


def run_mutants(
    make_unguarded: MakeBackend, mutants: tuple[Mutant, ...] = MUTANTS, *, all_laws: bool = False
) -> Iterator[MutantResult]:
    """Run each mutant against its law (or all laws). `make_unguarded()`: a backend whose tables only the fence protects,
    since a runtime that holds writes back by itself hides some mistakes.
    """
    small = small_model()
    shared = Bench(make_unguarded, small)  # for mutants of the neutral part, which spoil no backend
    try:
        for mutant in mutants:
            yield run_mutant(mutant, shared, make_unguarded, small, all_laws)
    finally:
        shared.discard()


def run_mutant(
    mutant: Mutant, shared: Bench, make_backend: MakeBackend, small: SmallModel, all_laws: bool = False
) -> MutantResult:
    """One mutant. `shared`: a bench of right backends, for mutants that spoil none."""

    def spoilt() -> Backend:
        return mutant.wrap(make_backend())

    bench = Bench(spoilt, small) if mutant.spoils_backend else shared
    laws = [law for law in LAWS if all_laws or law.id == mutant.law]
    try:
        with mutant.patch():
            results = [check_law(law, bench) for law in laws]
            right = mutant.right_by_value and bench.rig.backend.capabilities.value_tickets
    finally:
        if mutant.spoils_backend:
            bench.discard()
    broken = tuple(r.id for r in results if r.outcome == "broken")
    message = next((r.message for r in results if r.id == mutant.law), "")
    return MutantResult(
        mutant.id, mutant.law, mutant.sentence, bool(broken), mutant.law in broken, broken, message, right
    )


__all__ = ["MUTANTS", "Mutant", "MutantResult", "one_stage_earlier", "run_mutant", "run_mutants"]
