"""Cuts a program into segments, each of which becomes one executable, and works out what passes between them.

A cut stands at each border of a region, after the marker's stage (but for a word, which stands inside), where the program
breaks, and where the device changes. PjRt holds an argument until the whole executable that took it has finished, so a table
is an argument of the segments that read it, and of no other: that is what lets a write land at the read boundary while the rest
of the forward still runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from warfence.core.errors import InputError
from warfence.core.modes import Region
from warfence.core.program import ForwardProgram, Gated, Stage, Step


@dataclass(frozen=True, slots=True)
class Segment:
    """Stages (and gates) that one executable runs.

    on_tables: runs where the tables are. ends_at_marker: the cut after the marker's stage follows. marked: the marker, a
    word, stands inside. takes: batch
    fields and values of earlier segments. gives: values that later segments take. outputs: those of the program, in the
    last segment.
    """

    steps: tuple[Step, ...]
    region: Region
    on_tables: bool
    ends_at_marker: bool
    marked: bool
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(step.stage for step in self.steps if step.stage is not None)

    @property
    def tables(self) -> tuple[str, ...]:
        return _unique(n for s in self.stages for n in s.reads)

    @property
    def state(self) -> tuple[str, ...]:
        return _unique(n for s in self.stages for n in s.state)

    @property
    def params(self) -> tuple[str, ...]:
        return _unique(n for s in self.stages for n in s.params)

    @property
    def scope(self) -> str:
        """What the text of its executable says of stages is true of these alone."""
        return "/".join(s.name for s in self.stages) if self.tables else ""

    @property
    def label(self) -> str:
        """The stage, or the first and the last of several."""
        names = [s.name for s in self.stages]
        return names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"


def cut(
    program: ForwardProgram, marker_after: str | None, gated: Gated, split: bool, inside: bool = False
) -> tuple[Segment, ...]:
    """The segments of a program, in order. `split`: stages that read tables run on another device than the rest. inside: the
    marker is a step of its segment, and nothing is cut there."""
    given = {name for stage in program.stages for name in stage.gives}
    missing = [name for name in program.outputs if name not in given]
    if missing:
        raise InputError(f"program '{program.name}': outputs {missing} are given by no stage")
    groups = [
        group
        for region in Region
        for group in _groups(program.steps(region, marker_after, gated), region, split, program.breaks, inside)
    ]
    segments: list[Segment] = []
    later: set[str] = set()
    for i in reversed(range(len(groups))):
        steps, region, on_tables = groups[i]
        stages = [step.stage for step in steps if step.stage is not None]
        outputs = program.outputs if i + 1 == len(groups) else ()
        takes = _taken_from_outside(stages, outputs)
        gives = _unique(n for s in stages for n in s.gives if n in later)
        marker = any(step.kind == "marker" for step in steps)
        kept = tuple(step for step in steps if inside or step.kind != "marker")
        segments.insert(
            0, Segment(kept, region, on_tables, marker and not inside, marker and inside, takes, gives, outputs)
        )
        later = (later - set(gives)) | set(takes)
    return tuple(segments)


def _groups(
    steps: Iterable[Step], region: Region, split: bool, breaks: Collection[str], inside: bool
) -> Iterator[tuple[list[Step], Region, bool]]:
    """Steps that run together. A gate belongs to what follows it, so that a ticket is out before the gate behind it."""
    group: list[Step] = []
    gates: list[Step] = []
    on_tables: bool | None = None
    for step in steps:
        if step.kind == "gate":
            gates.append(step)
            continue
        if step.stage is not None:
            wanted = split and bool(step.stage.reads)
            marked = group and group[-1].kind == "marker" and not inside
            if group and (on_tables is not wanted or marked or group[-1].name in breaks):
                yield group, region, bool(on_tables)
                group = []
            on_tables = wanted
        group += [*gates, step]
        gates = []
    if group:
        yield [*group, *gates], region, bool(on_tables)


def _taken_from_outside(stages: Iterable[Stage], outputs: Iterable[str]) -> tuple[str, ...]:
    """What the stages take, and then the outputs, that none of them gave before."""
    given: set[str] = set()
    outside: dict[str, None] = {}
    for stage in stages:
        outside.update(dict.fromkeys(n for n in stage.takes if n not in given))
        given.update(stage.gives)
    return _unique([*outside, *(n for n in outputs if n not in given)])


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
