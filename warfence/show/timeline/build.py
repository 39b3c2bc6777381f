"""Makes a timeline of what was noted at the interface and of when the stages ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from warfence.core.abilities import StageTime
from warfence.core.backend import FORWARD, PLAN, SCHEDULE
from warfence.core.program import ForwardProgram
from warfence.show.observe.times import Noted, Point, Tracer
from warfence.show.timeline.model import HOST, Arrow, Mark, Slice, Timeline

LANES = (SCHEDULE, PLAN, FORWARD)


def timeline(tracer: Tracer, title: str) -> Timeline:
    """All since `Tracer.start`. The lanes must be idle, and the backend may be closed."""
    times, programs = tracer.timer.stages(), tracer.programs
    stages = [_stage(time, programs[time.launch]) for time in times if time.launch in programs]
    calls = [_call(one) for one in tracer.noted]
    works = [made for one in tracer.noted if (made := _work(one)) is not None]
    slices = in_order([*stages, *works])
    used = {s.track for s in slices}
    ends = {(s.launch, name): s.end for s in stages for name in s.stages}
    timer = tracer.timer
    return Timeline(
        title=title,
        about={"backend": tracer.backend, "device": tracer.device, **timer.about},
        unit=timer.unit,
        unix_ns=timer.unix_ns,
        tracks=(HOST, *(lane for lane in LANES if lane in used)),
        slices=(*calls, *slices),
        arrows=tuple(a for one in tracer.noted if (a := _arrow(one, ends)) is not None),
        marks=tuple(m for launch, program in programs.items() if (m := _boundary(launch, program, ends)) is not None),
    )


def in_order(slices: Iterable[Slice]) -> list[Slice]:
    """A lane does one thing after the other: what seems to begin before the thing before it is over waited for that."""
    made: list[Slice] = []
    free: dict[str, float] = {}
    for one in sorted(slices, key=lambda s: s.end):
        begin = min(one.end, max(one.begin, free.get(one.track, one.begin)))
        made.append(one if begin == one.begin else replace(one, begin=begin))
        free[one.track] = one.end
    return made


def _stage(time: StageTime, program: ForwardProgram) -> Slice:
    stages = [program.stages[program.index(name)] for name in time.stages]
    reads = tuple(dict.fromkeys(name for stage in stages for name in stage.reads))
    several = len(time.stages) > 1
    name = f"{time.stages[0]}..{time.stages[-1]}" if several else time.stages[0]
    detail = {"program": program.name, "mode": program.mode.value}
    return Slice(
        FORWARD, name, time.begin, time.end, "stage", time.launch, reads, stages=time.stages, detail=detail
    )  # fmt: skip


def _call(noted: Noted) -> Slice:
    kinds = {"call": noted.name, "write": f"write {noted.name}", "wait": f"{noted.lane}: {noted.name}"}
    return Slice(HOST, kinds[noted.kind], noted.called, noted.returned, "call", noted.launch)


def _work(noted: Noted) -> Slice | None:
    """What the lane did about it; None where it did nothing, or failed before."""
    times = _times(noted)
    if times is None:
        return None
    begin, end = times
    if noted.kind == "write":
        writes = (noted.name,)
        return Slice(
            noted.lane, f"write {noted.name}", begin, end, "write", noted.launch, (), writes, detail=noted.detail
        )
    return Slice(noted.lane, noted.name, begin, end, "wait", noted.launch)


def _arrow(noted: Noted, ends: Mapping[tuple[int, str], float]) -> Arrow | None:
    point, times = noted.waits_for, _times(noted)
    recorded = _time_of(point, ends) if point is not None else None
    if point is None or recorded is None or times is None:
        return None
    _, went_on = times
    war = point.lane == FORWARD and noted.lane != FORWARD
    return Arrow(point.lane, recorded, noted.lane, went_on, point.name, point.launch, war)


def _times(noted: Noted) -> tuple[float, float] | None:
    """When the lane got to it and was done with it: at once, where nothing was left to wait for."""
    begin, end = (stamp() if stamp is not None else None for stamp in (noted.begin, noted.end))
    return None if begin is None or end is None else (begin, max(begin, end))


def _time_of(point: Point, ends: Mapping[tuple[int, str], float]) -> float | None:
    if point.stage is not None:
        return ends.get((point.launch, point.stage))
    return point.stamp() if point.stamp is not None else None


def _boundary(launch: int, program: ForwardProgram, ends: Mapping[tuple[int, str], float]) -> Mark | None:
    stage = program.read_boundary()
    time = ends.get((launch, stage.name)) if stage is not None else None
    return Mark(FORWARD, time, "read boundary", launch) if stage is not None and time is not None else None
