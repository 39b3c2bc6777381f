"""What a timeline tells, on every backend: lanes in order, stages, reads and writes, tickets, the boundary."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from tests.show.timeline.conftest import Trace
from warfence.core.backend import FORWARD, PLAN, SCHEDULE
from warfence.core.errors import InputError
from warfence.core.modes import FenceMode
from warfence.show.observe import Observed, Tracer
from warfence.show.timeline.launch_times import launch_times
from warfence.show.timeline.model import HOST, Timeline

BOUNDARY = "swa_translate"  # of the captured kind
EVERY = (
    ("strict", "cpu"),
    pytest.param("torch", "cpu", marks=pytest.mark.slow),
    pytest.param("jax", "cpu", marks=pytest.mark.slow),
    pytest.param("torch", "cuda", marks=[pytest.mark.slow, pytest.mark.gpu]),
    pytest.param("jax", "cuda", marks=[pytest.mark.slow, pytest.mark.gpu]),
)


def writes_before_the_reads_end(timeline: Timeline) -> int:
    """Table writes that were enqueued behind a launch, and over before its reads were."""
    writes = [s for s in timeline.slices if s.writes]
    return sum(s.end < (timeline.boundary(s.launch) or 0) for s in writes)


@pytest.mark.parametrize(("name", "device"), EVERY)
def test_every_stage_of_every_launch_has_its_time(trace: Trace, name: str, device: str) -> None:
    timeline = trace(name, device)
    seen = Counter((s.launch, stage) for s in timeline.slices if s.kind == "stage" for stage in s.stages)
    assert set(seen.values()) == {1}
    stages = {launch: {stage for n, stage in seen if n == launch} for launch in timeline.launches}
    assert len(timeline.launches) > 15
    assert all({"stage_inputs", "page_table", BOUNDARY, "layer.2", "sample", "relay"} <= of for of in stages.values())


@pytest.mark.parametrize(("name", "device"), EVERY)
def test_a_lane_does_one_thing_after_the_other(trace: Trace, name: str, device: str) -> None:
    timeline = trace(name, device)
    assert timeline.tracks == (HOST, SCHEDULE, FORWARD)
    for track in timeline.tracks:
        slices = sorted((s for s in timeline.slices if s.track == track), key=lambda s: (s.end, s.begin))
        assert all(s.begin <= s.end for s in slices)
        if track != HOST:  # a call of the host may lie inside of another one
            assert all(before.end <= behind.begin for before, behind in pairwise(slices))


@pytest.mark.parametrize(("name", "device"), EVERY)
def test_the_boundary_is_the_end_of_the_last_reader(trace: Trace, name: str, device: str) -> None:
    timeline = trace(name, device)
    assert [mark.launch for mark in timeline.marks] == list(timeline.launches)
    for s in timeline.slices:
        if BOUNDARY in s.stages:
            assert s.reads
            assert timeline.boundary(s.launch) == s.end
        elif s.kind == "stage" and s.stages[0] in ("embed", "layer.0", "relay"):
            assert not s.marked


@pytest.mark.parametrize(("name", "device"), EVERY)
def test_a_fine_fence_is_an_arrow_from_the_boundary(trace: Trace, name: str, device: str) -> None:
    timeline = trace(name, device)
    decoding = [a for a in timeline.arrows if a.war and a.name.startswith("ticket")]
    assert len(decoding) > 10
    for arrow in decoding:
        assert (arrow.source, arrow.target) == (FORWARD, SCHEDULE)
        assert arrow.recorded == timeline.boundary(arrow.launch)
        assert arrow.went_on >= arrow.recorded
    assert any(not a.war and a.target == FORWARD for a in timeline.arrows)  # reads wait for the plan's writes


def test_a_coarse_fence_is_an_arrow_from_the_end_of_the_forward(trace: Trace) -> None:
    timeline = trace("strict", fence=FenceMode.COARSE)
    assert not [a for a in timeline.arrows if a.name.startswith("ticket")]
    coarse = [one for one in launch_times(timeline) if one.goes_on is not None]
    assert len(coarse) > 10
    assert all(one.goes_on >= one.over for one in coarse if one.goes_on is not None)
    fine = [one for one in launch_times(trace("strict")) if one.mode == "decode" and one.goes_on is not None]
    assert all(one.goes_on < one.over for one in fine if one.goes_on is not None)


@pytest.mark.slow
def test_without_a_fence_writes_lie_before_the_boundary(trace: Trace) -> None:
    assert writes_before_the_reads_end(trace("strict")) == 0
    off = trace("strict", fence=FenceMode.OFF)
    assert not [a for a in off.arrows if a.war]
    assert writes_before_the_reads_end(off) > 0
    assert any(
        one.written < one.reads_end
        for one in launch_times(off)
        if one.written is not None and one.reads_end is not None
    )


def test_a_self_fence_blocks_the_host(trace: Trace) -> None:
    blocks = [s for s in trace("strict", fence=FenceMode.SELF).slices if s.name == "the host blocks"]
    assert len(blocks) == len(trace("strict").launches)
    assert all(s.track == HOST for s in blocks)


@pytest.mark.slow
def test_the_plan_lane_has_a_track_where_it_is_used(trace: Trace) -> None:
    timeline = trace("strict", spec="eagle")
    assert timeline.tracks == (HOST, SCHEDULE, PLAN, FORWARD)
    assert any(s.track == PLAN and s.writes for s in timeline.slices)
    assert {timeline.mode(launch) for launch in timeline.launches} >= {"target_verify", "draft_extend"}


def test_a_part_of_a_timeline(trace: Trace) -> None:
    timeline = trace("strict")
    begin, end = timeline.span(6, 7)
    part = timeline.between(begin, end)
    assert part.whole_launches == (6, 7)
    assert {s.launch for s in part.slices if s.kind == "stage"} == {6, 7}
    assert part.shown == (begin, end)
    ended = part.between(begin, timeline.boundary(7) or end)
    assert ended.whole_launches == (6,)
    assert ended.launches == (6, 7)


def test_a_backend_that_tells_no_times_is_refused() -> None:
    class Silent:
        name, device, capabilities = "silent", "cpu", None

    with pytest.raises(InputError, match=r"backend 'silent' cannot tell .* time_stages\(\).* trace one that has it"):
        Observed(Silent(), Tracer())  # type: ignore[arg-type]
