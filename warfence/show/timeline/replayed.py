"""A forced run as a timeline: when each access was let go, how long it stood, and when it had run, seen by the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warfence.races.replay.driver import Ran
from warfence.races.replay.plan import Attempt
from warfence.races.scenarios.steps import Step
from warfence.show.timeline.model import Kind, Mark, Slice, Timeline

ABOUT = {
    "clock": "the host's monotonic clock",
    "slice": "an access, from when its gate was opened until the host saw that it had run; a wait, as long as it stood",
}


def timeline(title: str, attempt: Attempt, ran: Sequence[Ran]) -> Timeline:
    """The run of one attempt. The read boundary of a launch is where its last shared read ended."""
    steps = attempt.trace.steps
    tracks = tuple(dict.fromkeys(steps[one.step].lane for one in sorted(ran, key=lambda one: one.step)))
    slices = [part for one in ran for part in _slices(steps[one.step], one)]
    ends: dict[int, Ran] = {}
    for one in ran:
        step = steps[one.step]
        if step.launch and _tables(step, "reads") and (step.launch not in ends or one.ended > ends[step.launch].ended):
            ends[step.launch] = one
    marks = [
        Mark(steps[one.step].lane, one.ended * 1e6, f"read boundary of launch {launch}", launch)
        for launch, one in ends.items()
    ]
    return Timeline(title, ABOUT, "us", None, tracks, tuple(slices), marks=tuple(marks))


def _slices(step: Step, one: Ran) -> list[Slice]:
    detail: Mapping[str, str] = {"line": str(step.line)}
    reads, writes = _tables(step, "reads"), _tables(step, "writes", "donates")
    begin, parts = one.opened, []
    if one.stood is not None:
        parts.append(Slice(step.lane, f"stands: {step.title}", begin * 1e6, one.stood * 1e6, "wait", detail=detail))
        begin = one.stood
    kind: Kind = "stage" if step.launch else "write" if writes else "call"
    run = Slice(
        step.lane, step.title, begin * 1e6, one.ended * 1e6, kind, step.launch, reads, writes,
        (step.stage,) if step.stage else (), detail,
    )  # fmt: skip
    return [*parts, run]


def _tables(step: Step, *verbs: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.memory for one in step.reaches if one.verb in verbs))
