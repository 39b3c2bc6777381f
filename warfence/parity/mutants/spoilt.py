"""Mistakes in a backend, made in place on a fresh one: they apply to any backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from warfence.core.backend import PLAN, Backend, Forward, Lane
from warfence.core.modes import Region
from warfence.core.program import START, ForwardProgram, Gated, Stage
from warfence.parity.mutants.base import Mutant

MoveMarker = Callable[[ForwardProgram, str], str | None]
ChangeProgram = Callable[[ForwardProgram], ForwardProgram]


def _compiling(move: MoveMarker, change: ChangeProgram = lambda program: program) -> Callable[[Backend], Backend]:
    """A backend that compiles another program, or plants the marker elsewhere, than it was told."""

    def wrap(backend: Backend) -> Backend:
        compile_right = backend.compile

        def compile_wrong(program: ForwardProgram, *, marker_after: str | None = None, gated: Gated = False) -> Forward:
            planted = move(program, marker_after) if marker_after is not None else None
            return compile_right(change(program), marker_after=planted, gated=gated)

        cast(Any, backend).compile = compile_wrong
        return backend

    return wrap


def one_stage_earlier(program: ForwardProgram, stage: str) -> str:
    """The replay stage before; the stage itself where there is none."""
    before = program.before(stage)
    return before if before != START and program.stages[program.index(before)].region is Region.REPLAY else stage


def _one_stage_later(program: ForwardProgram, stage: str) -> str:
    return program.stages[program.index(stage) + 1].name


def _reads_again(program: ForwardProgram) -> ForwardProgram:
    """A snapshot program whose replay looks the live map up once more."""
    first = program.region(Region.REPLAY)[0]
    stages: list[Stage] = []
    for stage in program.stages:
        if stage is first:
            stages += [
                replace(s, name=f"{s.name}.again", region=Region.REPLAY)
                for s in program.region(Region.LOAD_BATCH)
                if s.op == "swa_translate"
            ]
        stages.append(stage)
    return replace(program, stages=tuple(stages))


def _plan_lane_alone(backend: Backend) -> Backend:
    lane_right = backend.lane

    def lane_wrong(name: str) -> Lane:
        lane = lane_right(name)
        if name == PLAN:
            cast(Any, lane).wait_lane = lambda other: None
        return lane

    cast(Any, backend).lane = lane_wrong
    return backend


def _timed_without_marker(backend: Backend) -> Backend:
    time_right = getattr(backend, "time_stages", lambda: SimpleNamespace(start=lambda: None))

    def time_wrong() -> Any:
        _compiling(lambda program, stage: None)(backend)
        return time_right()

    cast(Any, backend).time_stages = time_wrong
    return backend


SPOILT: tuple[Mutant, ...] = (
    Mutant(
        "marker-one-stage-early", "2-release-at-boundary", "the marker stands one stage before the boundary",
        wrap=_compiling(one_stage_earlier),
    ),
    Mutant(
        "marker-one-stage-late", "2-release-at-boundary", "the marker stands one stage behind: over-fencing",
        wrap=_compiling(_one_stage_later),
    ),
    Mutant(
        "plan-lane-alone", "6-barrier-after-launch", "the plan lane does not wait for the schedule lane",
        wrap=_plan_lane_alone,
    ),
    Mutant(
        "reads-again", "10-snapshot-once", "the replay looks the live map up although a snapshot was taken",
        wrap=_compiling(lambda program, stage: stage, _reads_again),
    ),
    Mutant(
        "claims-markers", "14-capabilities-kept", "markers are declared and never planted",
        wrap=_compiling(lambda program, stage: None),
    ),
    Mutant(
        "timed-without-marker", "16-observers-change-nothing", "forwards that note their times have no marker",
        wrap=_timed_without_marker,
    ),
)  # fmt: skip
