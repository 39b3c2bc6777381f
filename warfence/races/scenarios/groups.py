"""The catalogue by group, each program with its verdict, its text and its witness: what pages and the report show."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from warfence.races.scenarios.explore import Outcome, explore
from warfence.races.scenarios.library import catalogue
from warfence.races.scenarios.program import Scenario
from warfence.races.scenarios.repair import repair
from warfence.races.scenarios.sentences import interleaving, sentences
from warfence.races.scenarios.text import text


@dataclass(frozen=True, slots=True)
class Entry:
    """One program. lanes, rows: the interleaving that goes wrong, a column a lane; empty where none does."""

    scenario: Scenario
    outcome: Outcome
    text: str
    lanes: list[str]
    rows: list[list[str]]
    said: list[str]

    @property
    def verdict(self) -> str:
        return self.outcome.verdict


@dataclass(frozen=True, slots=True)
class Group:
    """The programs of one group."""

    name: str
    entries: list[Entry]

    @property
    def file(self) -> str:
        """Of its page in the docs."""
        return f"{self.name.replace(' ', '-')}.md"

    @property
    def unexpected(self) -> int:
        return sum(not entry.outcome.expected for entry in self.entries)


def groups() -> list[Group]:
    """Every scenario of the catalogue, explored."""
    return [
        Group(name, [entry(one) for one in scenarios])
        for name, scenarios in groupby(catalogue(), lambda one: one.group)
    ]


def entry(scenario: Scenario) -> Entry:
    """One scenario, explored."""
    outcome = explore(scenario)
    lanes, rows = interleaving(outcome)
    return Entry(scenario, outcome, text(scenario), lanes, rows, sentences(outcome, repair(outcome)))
