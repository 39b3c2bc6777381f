"""What every read sees when each call takes effect as it is made, and where a run differs from that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warfence.races.replay.machine import Seen, value_of
from warfence.races.scenarios.operations import Reach
from warfence.races.scenarios.steps import Step, Trace

NOT_SHOWN = "only an allocation races here, which leaves no value"


@dataclass(frozen=True, slots=True)
class WrongCell:
    """A cell that held something else. step: the read, or None for the memory in the end. of: the launch it had to see."""

    step: int | None
    cell: str
    saw: int
    instead: int
    of: int = 0


def differences(trace: Trace, seen: Seen, final: Mapping[str, Sequence[int]]) -> list[WrongCell]:
    """The first differing cell of each read, then of each memory; and reads that do not see the launch they name."""
    expected, memory = serial(trace)
    found: list[WrongCell] = []
    for step in trace.steps:
        for at, one in enumerate(step.reaches):
            if (step.id, at) not in expected or (step.id, at) not in seen:
                continue
            if one.launch:
                found += _misread(trace, step, one, seen[step.id, at])
                continue
            pairs = zip(seen[step.id, at], expected[step.id, at], strict=True)
            wrong = [(one.begin + i, saw, right) for i, (saw, right) in enumerate(pairs) if saw != right]
            if wrong:
                cell, saw, right = wrong[0]
                found.append(WrongCell(step.id, f"{one.memory}[{cell}]", saw, right))
    for name in memory.keys() & final.keys():
        cells = [(i, final[name][i], right) for i, right in memory[name].items() if final[name][i] != right]
        if cells:
            found.append(WrongCell(None, f"{name}[{cells[0][0]}]", *cells[0][1:]))
    return found


def serial(trace: Trace) -> tuple[Seen, dict[str, dict[int, int]]]:
    """(what every read sees, what is in the cells in the end that were written). Copies of a donation are left out."""
    memory: dict[str, dict[int, int]] = {}
    seen: Seen = {}
    for step in trace.steps:
        if step.id in trace.copies:
            continue
        for at, one in enumerate(step.reaches):
            cells = memory.setdefault(one.memory, {})
            if one.verb == "reads":
                seen[step.id, at] = tuple(cells.get(cell, 0) for cell in range(one.begin, one.end))
        for one in step.reaches:
            if one.verb in ("writes", "donates"):
                memory[one.memory] |= dict.fromkeys(range(one.begin, one.end), value_of(step.id))
    return seen, memory


def say(trace: Trace, one: WrongCell) -> str:
    """One difference as a sentence, with who wrote what."""
    instead = f"what launch {one.of} writes" if one.of else f"{one.instead} ({_writer(trace, one.instead)})"
    if one.step is None:
        return f"{one.cell} holds {one.saw} ({_writer(trace, one.saw)}) in the end instead of {instead}"
    step = trace.steps[one.step]
    return f"{place(step)} saw {one.saw} in {one.cell} ({_writer(trace, one.saw)}) instead of {instead}"


def place(step: Step) -> str:
    """A step with its lane, its launch and its line."""
    launch = f" of launch {step.launch}" if step.launch else ""
    return f"'{step.lane} {step.title}'{launch} (line {step.line})"


def _writer(trace: Trace, value: int) -> str:
    return f"written by {place(trace.steps[value - 1])}" if value else "never written"


def _misread(trace: Trace, step: Step, read: Reach, saw: Sequence[int]) -> list[WrongCell]:
    """The first cell in which a read does not see the launch that it names, whenever that was called."""
    right = [other for other in trace.steps if other.launch == read.launch and other is not step]
    written = {
        cell
        for other in right
        for one in other.reaches
        if one.memory == read.memory and one.verb in ("writes", "donates")
        for cell in range(max(one.begin, read.begin), min(one.end, read.end))
    }
    values = {value_of(other.id) for other in right}
    for cell in sorted(written) or [read.begin]:
        if (value := saw[cell - read.begin]) not in values:
            return [WrongCell(step.id, f"{read.memory}[{cell}]", value, 0, read.launch)]
    return []
