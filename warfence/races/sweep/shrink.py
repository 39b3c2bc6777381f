"""The smallest program that two judges still disagree about, by delta debugging on its text (Zeller and Hildebrandt, 2002).

Whatever is left out, the rest has to be a program still; what cannot be parsed is no candidate. Where arithmetic is one of
the two, it speaks of the family's axes and not of a text, so that values on the axes are made simpler instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from warfence.core.errors import InputError
from warfence.races.scenarios.forms import DECLARATIONS
from warfence.races.scenarios.parse import parse
from warfence.races.scenarios.program import Scenario
from warfence.races.scenarios.text import INDENT, text
from warfence.races.sweep.case import Case, Grid
from warfence.races.sweep.families import FAMILIES
from warfence.races.sweep.judges import LANES, ORACLE, LaneJudge, Said, disagreement, judge

_REPEAT = re.compile(r"( *)repeat (\w+) in (\d+)\.\.(\d+) \{")


def shrink(case: Case, said: Said, steps: int, lanes: Sequence[LaneJudge] = ()) -> Scenario:
    """The shrunk scenario. said: by the judges of the case, two of which disagree. steps: those its family was made for."""
    pair = disagreement(said)
    assert pair, "only a case that two judges disagree about can be shrunk"
    lanes = [one for one in lanes if LANES + one.name in pair]

    def still(one: Scenario, expected: str = "") -> bool:
        now = judge(one, expected, lanes)
        return all(now.get(name) == said[name] for name in pair)

    if ORACLE in pair:
        family = FAMILIES[case.family]
        assert isinstance(family, Grid), "only these have arithmetic"
        while found := next((one for one in family.simpler(case, steps) if still(one.scenario, one.expected)), None):
            case = found
        scenario = case.scenario
    else:
        scenario = smallest(case.scenario, still)
    who = " and ".join(f"{name} says {said[name]}" for name in pair)
    return replace(scenario, title=f"{scenario.title}, shrunk: {who}")


def smallest(scenario: Scenario, still: Callable[[Scenario], bool]) -> Scenario:
    """The scenario with as little in it as `still` allows: nothing more can be left out."""
    head, body = text(scenario).split("\n\n", 1)

    def scenario_of(lines: Sequence[str]) -> Scenario | None:
        try:
            made = parse("\n".join([head, "", *lines]), "shrunk")
            return made if still(made) else None
        except InputError:
            return None

    lines = body.splitlines()
    while found := next(filter(scenario_of, _smaller(lines)), None):
        lines = found
    made = scenario_of(lines)
    assert made is not None, "the whole scenario is what two judges disagree about"
    return made


def _smaller(lines: list[str]) -> Iterator[list[str]]:
    """Candidates, those that leave out most first: lines, names that are declared, turns of a loop, the loop itself."""
    size = len(lines)
    while size := size // 2:
        for at in range(len(lines) - size + 1):
            yield lines[:at] + lines[at + size :]
    for at, line in enumerate(lines):
        before, behind = lines[:at], lines[at + 1 :]
        kind, _, items = line.partition(" ")
        if kind in DECLARATIONS:
            names = items.split(", ")
            for one in names:
                yield [*before, f"{kind} {', '.join(name for name in names if name != one)}", *behind]
        if loop := _REPEAT.fullmatch(line):
            indent, name, first, last = loop.groups()
            if first != last:
                yield [*before, line.replace(f"..{last}", f"..{int(last) - 1}"), *behind]
            length = behind.index(indent + "}")
            turns = range(int(first), int(last) + 1)
            once = [one.removeprefix(INDENT) for one in behind[:length]]
            yield [*before, *_unrolled(once, name, turns), *behind[length + 1 :]]


def _unrolled(body: Sequence[str], name: str, turns: Sequence[int]) -> list[str]:
    return [re.sub(rf"\b{name}\b", str(turn), line) for turn in turns for line in body]
