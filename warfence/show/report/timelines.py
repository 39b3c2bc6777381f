"""The same step on several backends, one above the other, with the read boundary at the same place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warfence.core.errors import WarfenceError
from warfence.parity.honesty import what_failed
from warfence.serve.jobs.options import ServeOptions
from warfence.show.timeline.launch_times import LaunchTimes, launch_times
from warfence.show.timeline.model import Timeline
from warfence.show.timeline.run import first_step, trace_steps
from warfence.show.timeline.svg import stacked_svg

ATTENTION = "captured"  # its last read is inside the captured forward, where the marker stands


@dataclass(frozen=True, slots=True)
class Row:
    """What the picture shows of one backend, in numbers. unit: of the times, "us" or "steps"."""

    title: str
    unit: str
    told: LaunchTimes


@dataclass(frozen=True, slots=True)
class Picture:
    """svg: one SVG element; empty where no backend could be traced. missing: backend -> why it is not in the picture."""

    svg: str
    rows: Sequence[Row]
    notes: Sequence[str]
    missing: dict[str, str]


def step_picture(targets: dict[str, str], device: str) -> Picture:
    """Serve a few prompts on each backend (name -> what `warfence.backends` opens) and draw the first step.

    A backend that cannot tell when its stages run, or fails, is in `missing`.
    """
    made: list[Timeline] = []
    missing: dict[str, str] = {}
    for name, target in targets.items():
        options = ServeOptions(backend=target, device=device, attention=ATTENTION)
        try:
            step = first_step(trace_steps(options, steps=1))
        except WarfenceError as lacking:
            missing[name] = str(lacking)
        except Exception as error:  # of a backend under test: the other parts of the report are worth having
            missing[name] = what_failed(error)
        else:
            if step.marks:
                made.append(step)
            else:
                missing[name] = "no read boundary was seen"
    return picture(made, missing)


def picture(timelines: Sequence[Timeline], missing: dict[str, str]) -> Picture:
    """The picture of timelines, each of one step."""
    rows = [Row(timeline.title, timeline.unit, one) for timeline in timelines for one in launch_times(timeline)[:1]]
    notes = [
        f"{t.title.split(':')[0]}: a slice is {t.about['slice']}; the clock is {t.about['clock']}" for t in timelines
    ]
    return Picture(stacked_svg(timelines) if timelines else "", rows, notes, missing)
