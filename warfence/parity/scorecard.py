"""check_backend(): runs every law on a backend and says, law by law, what held. No pytest needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from warfence.core.errors import WarfenceError
from warfence.parity.laws import LAWS, Bench, Law
from warfence.parity.laws.base import MakeBackend
from warfence.parity.small import SmallModel

Outcome = Literal["held", "broken", "not applicable"]


@dataclass(frozen=True, slots=True)
class LawResult:
    """What one law's check said. `message`: what was seen when broken, or which capability is absent."""

    id: str
    sentence: str
    outcome: Outcome
    message: str = ""


@dataclass(slots=True)
class Scorecard:
    """The results of all laws on one backend."""

    results: list[LawResult] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return all(r.outcome != "broken" for r in self.results)

    def broken(self) -> tuple[str, ...]:
        return tuple(r.id for r in self.results if r.outcome == "broken")


def check_law(law: Law, bench: Bench) -> LawResult:
    """Run one law. Whatever it raises counts as broken: a check that cannot be finished has not held."""
    try:
        capabilities = bench.rig.backend.capabilities
        absent = [n for n in law.needs if not getattr(capabilities, n)]
        if absent:
            reasons = "; ".join(f"{n}: {capabilities.reasons.get(n, 'no reason given')}" for n in absent)
            return LawResult(law.id, law.sentence, "not applicable", reasons)
        law.check(bench)
    except Exception as error:
        bench.discard()
        known = isinstance(error, WarfenceError)
        message = str(error) if known else f"{type(error).__name__}: {error}"
        return LawResult(law.id, law.sentence, "broken", message)
    return LawResult(law.id, law.sentence, "held")


def iterate_laws(
    make_backend: MakeBackend, laws: tuple[Law, ...] = LAWS, small: SmallModel | None = None
) -> Iterator[LawResult]:
    """Check the laws one by one on one bench."""
    bench = Bench(make_backend, small)
    try:
        for law in laws:
            yield check_law(law, bench)
    finally:
        bench.discard()


def check_backend(
    make_backend: MakeBackend,
    laws: tuple[Law, ...] = LAWS,
    on_result: Callable[[LawResult], None] = lambda result: None,
) -> Scorecard:
    """Hold a backend to the laws. `make_backend()` gives a fresh backend each time it is called."""
    card = Scorecard()
    for result in iterate_laws(make_backend, laws):
        card.results.append(result)
        on_result(result)
    return card
