"""Strategies on their fixtures: all that is made and compiled before anything is measured."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warfence.bench.cases import Case
from warfence.bench.fixture import BenchFixture, Size
from warfence.bench.presets import find, tiled_weights
from warfence.bench.strategies import STRATEGIES, Strategy, not_taken
from warfence.core.backend import Backend
from warfence.core.errors import InputError
from warfence.core.forwards import PlannedForward
from warfence.host.meter import Meter

LEAST_STEPS = 8
Open = Callable[[Mapping[str, str]], Backend]  # a backend with these options


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: rounds; steps of a block, fewer where a block would take longer than `block_s`."""

    rounds: int = 7
    steps: int = 60
    block_s: float = 0.5
    bursts: int = 30
    memory_steps: int = 900

    def fitting(self, step_s: float) -> int:
        return max(LEAST_STEPS, min(self.steps, int(self.block_s / max(step_s, 1e-9))))


QUICK = Effort(rounds=5, steps=20, block_s=0.15, bursts=8, memory_steps=90)


@dataclass(frozen=True, slots=True)
class Entry:
    """A strategy on its fixture, ready to run."""

    strategy: Strategy
    fixture: BenchFixture
    planned: PlannedForward


class Group:
    """The cases of one size on one backend: the fixtures (one for each set of backend options), compiled once. Close it."""

    def __init__(
        self, name: str, open_backend: Open, case: Case, strategies: Sequence[Strategy], effort: Effort, meter: Meter
    ) -> None:
        config = find(case.forward).config(case.forward)
        self.name, self.effort, self.meter = name, effort, meter
        self.entries: list[Entry] = []
        self.unavailable: dict[str, str] = {}
        self.size = Size(config, case.batch, case.table_rows)
        self._weights = tiled_weights(config)
        self.parameters = sum(w.size for w in self._weights.values())
        self._open, self._fixtures = open_backend, dict[tuple[tuple[str, str], ...], BenchFixture]()
        meter.phase(
            f"{name}: {case.forward}, batch {case.batch}, {case.table_rows} rows: compiling", len(strategies) + 1
        )
        try:
            self.first = self._fixture({})
            # What the limits are measured with: the forward that carries the marker, where there can be one.
            self.reference = self.first.planned("captured", True)
            meter.step()
            for strategy in strategies:
                self._prepare(strategy)
                meter.step()
            for fixture in self._fixtures.values():
                fixture.settle()
                fixture.fill(fixture.planned("captured", True))
            gc.collect()
            gc.freeze()  # what was made so far stays: a collection before a block then takes no time
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End every backend of the group, and let go of its memory."""
        for fixture in self._fixtures.values():
            fixture.backend.close()
        self._fixtures.clear()
        self.entries.clear()
        gc.unfreeze()
        gc.collect()

    # -- inside

    def _fixture(self, options: Mapping[str, str]) -> BenchFixture:
        key = tuple(sorted(options.items()))
        if key not in self._fixtures:
            backend = self._open(options)
            try:
                self._fixtures[key] = BenchFixture(backend, self.size, self._weights)
            except BaseException:
                backend.close()
                raise
        return self._fixtures[key]

    def _prepare(self, strategy: Strategy) -> None:
        """Make it an entry, or note why it cannot be one."""
        try:
            reason = not_taken(self.name, strategy.options)
            fixture = self._fixture(strategy.options) if reason is None else self.first
            reason = reason or strategy.lacking(fixture.backend.capabilities)
        except InputError as refused:
            reason = str(refused)
        if reason is not None:
            self.unavailable[strategy.name] = reason
            return
        self.entries.append(Entry(strategy, fixture, fixture.planned(*strategy.forward)))


def chosen(names: Sequence[str]) -> list[Strategy]:
    """The strategies of these names, in their usual order; all without names. InputError for one that there is not."""
    known = {strategy.name for strategy in STRATEGIES}
    for name in names:
        if name not in known:
            raise InputError(f"unknown strategy '{name}'; choose one of: {', '.join(s.name for s in STRATEGIES)}")
    return [s for s in STRATEGIES if not names or s.name in names]
