"""One scenario of a sweep, and what a family of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from random import Random
from typing import Any

from warfence.races.scenarios.build import Builder, Subject
from warfence.races.scenarios.program import Scenario


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario that its family, index and seed give again. expected: what the family's arithmetic says; may be empty.

    place: the values of the family's axes, where it has any.
    """

    family: str
    index: int
    scenario: Scenario
    expected: str = ""
    place: Any = None

    @property
    def name(self) -> str:
        return f"{self.family}-{self.index}"


def builder(family: str, index: int, group: str, expect: str = "ok", about: str = "") -> Builder:
    """The head of a case's scenario."""
    return Builder(f"{family}-{index}", about or f"Case {index} of {family}", group, "warfence sweep", expect)


@dataclass(frozen=True)
class Grid:
    """An exhaustive family: all combinations of its axes, each with a verdict from arithmetic alone.

    axes(steps): values by name, the simplest first. place: a frozen dataclass with these names. oracle, build: of one place.
    """

    name: str
    about: str
    axes: Callable[[int], Mapping[str, Sequence[Any]]]
    place: Callable[..., Any]
    oracle: Callable[[Any], str]
    build: Callable[[Any, Builder], None]
    group: str

    def size(self, steps: int) -> int:
        """How many cases there are with at most so many steps."""
        return prod(len(values) for values in self.axes(steps).values())

    def case(self, index: int, steps: int, seed: int) -> Case:
        """The case of one index. seed: not used, nothing is random."""
        axes, left, values = self.axes(steps), index, {}
        for name, choices in reversed([*axes.items()]):
            left, at = divmod(left, len(choices))
            values[name] = choices[at]
        return self.at(self.place(**values), index)

    def at(self, place: Any, index: int) -> Case:
        """The case of one place."""
        expected = self.oracle(place)
        lines = builder(self.name, index, self.group, expected, str(place))
        self.build(place, lines)
        return Case(self.name, index, lines.scenario(), expected, place)

    def simpler(self, case: Case, steps: int) -> Iterator[Case]:
        """Cases that have a simpler value on one axis."""
        for name, choices in self.axes(steps).items():
            for value in choices[: choices.index(getattr(case.place, name))]:
                yield self.at(replace(case.place, **{name: value}), case.index)


@dataclass(frozen=True)
class Listed:
    """An exhaustive family without arithmetic: every program of up to `steps` of these sentences.

    first: what the first sentence can be, where others would only rename the lanes.
    """

    name: str
    about: str
    sentences: tuple[str, ...]
    first: tuple[str, ...]
    declare: Callable[[Builder], Mapping[str, Subject]]

    def size(self, steps: int) -> int:
        return sum(len(self.first) * len(self.sentences) ** (length - 1) for length in range(1, steps + 1))

    def case(self, index: int, steps: int, seed: int) -> Case:
        """The case of one index. steps, seed: not used, an index means the same program with any."""
        left, length = index, 1
        while left >= (many := len(self.first) * len(self.sentences) ** (length - 1)):
            left, length = left - many, length + 1
        body = []
        for _ in range(length - 1):
            left, at = divmod(left, len(self.sentences))
            body.append(self.sentences[at])
        lines = builder(self.name, index, "wrong order of waits")
        subjects = self.declare(lines)
        for sentence in (self.first[left], *reversed(body)):
            subject, _, words = sentence.partition(" ")
            subjects[subject].says(words)
        return Case(self.name, index, lines.scenario())


@dataclass(frozen=True)
class Drawn:
    """A random family: draw(random, builder) adds the body of one program."""

    name: str
    about: str
    draw: Callable[[Random, Builder], None]

    def case(self, index: int, steps: int, seed: int) -> Case:
        """The case of one index. steps: not used."""
        lines = builder(self.name, index, "bypass", about=f"Case {index} of {self.name}, seed {seed}")
        self.draw(Random(f"{self.name} {index} {seed}"), lines)
        return Case(self.name, index, lines.scenario())


Family = Grid | Listed | Drawn
