"""`warfence trace`: a few steps as a timeline, for a trace viewer and as a picture."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console

from warfence import backends
from warfence.cli import options as given
from warfence.cli import words
from warfence.cli.output import print_json, print_table, prose, say, screens
from warfence.core.errors import InputError
from warfence.host.files import check_output, write_output
from warfence.serve.jobs.options import ServeOptions
from warfence.show.timeline.launch_times import document, launch_times
from warfence.show.timeline.model import Timeline
from warfence.show.timeline.overlay import overlay
from warfence.show.timeline.run import first_step, trace_steps
from warfence.show.timeline.svg import stacked_svg, svg
from warfence.show.timeline.trace_events import trace_events

DEFAULT_OUT = Path("trace.json")


def trace(
    backend: Annotated[list[str] | None, given.several_backends(words.FIRST)] = None,
    device: given.Devices = "cpu",
    fence: Annotated[str, typer.Option(help="fine, coarse, self or off; off holds nothing back.")] = "fine",
    attention: given.OneAttention = "captured",
    spec: given.Algorithm = "none",
    tables: Annotated[
        str | None, typer.Option(help="donated or aliased, if there are both.", show_default="donated; aliased without a fence")
    ] = None,
    steps: Annotated[int, typer.Option(help="Decoding steps to keep.", min=1, max=1000)] = 2,
    out: Annotated[Path, typer.Option(help="Trace Event JSON: open it in ui.perfetto.dev or chrome://tracing.")] = DEFAULT_OUT,
    svg: Annotated[Path | None, typer.Option(help="The first of the steps as a picture.")] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Run under the profiler of the one backend, and lay the timeline over its trace.")
    ] = False,
    as_json: given.AsJson = False,
) -> None:  # fmt: skip
    """Run a few steps of the shipped model and show what ran when: lanes, stages, waits, writes, the read boundary.

    Several backends come one above the other, with the boundary of their first step at the same place.
    """
    names = list(dict.fromkeys(backend or backends.installed()[:1]))
    if profile and len(names) > 1:
        raise InputError("--profile lays one timeline over one profile; give one --backend")
    for option, path in (("--out", out), ("--svg", svg)):
        check_output(option, path)
    console, _ = screens(as_json)
    with TemporaryDirectory() as folder:
        profiled = Path(folder) / "profile.json" if profile else None
        made = [_traced(name, device, fence, attention, spec, tables, steps, profiled) for name in names]
        write_timelines("--out", out, *made, profile=profiled)
    if svg is not None:
        _draw(svg, made)
    if as_json:
        print_json({"out": str(out), "svg": str(svg) if svg else None, "timelines": [document(t) for t in made]})
    for timeline in made:
        _tell(console, timeline)
    say(console, f"Written: {out}; open it in https://ui.perfetto.dev or chrome://tracing")
    if svg is not None:
        say(console, f"Written: {svg}")


def write_timelines(option: str, path: Path, *timelines: Timeline, profile: Path | None = None) -> None:
    """Write Trace Event JSON; over the profile, where there is one."""
    document = overlay(timelines[0], profile) if profile is not None else trace_events(*timelines)
    write_output(path, json.dumps(document) + "\n", option)


def _traced(
    name: str, device: str, fence: str, attention: str, spec: str, tables: str | None, steps: int, profile: Path | None
) -> Timeline:
    if tables is None and fence == "off":
        tables = backends.package(name).unguarded.get("tables")  # what the runtime guards it would refuse
    options = ServeOptions(
        backend=name, device=device, fence=fence, allow_hazard=True, attention=attention, spec=spec, tables=tables
    )
    return trace_steps(options, steps, profile=profile)


def _draw(path: Path, timelines: list[Timeline]) -> None:
    cut = [first_step(timeline) for timeline in timelines]
    text = svg(cut[0]) if len(cut) == 1 else stacked_svg(cut)
    write_output(path, text, "--svg")


def _tell(console: Console, timeline: Timeline) -> None:
    unit = "steps" if timeline.unit == "steps" else "us"
    columns = ["launch", "mode", "reads end", "schedule goes on", "next write ends", "forward ends"]
    rows = [
        [str(one.launch), one.mode, *(_number(t) for t in (one.reads_end, one.goes_on, one.written, one.over))]
        for one in launch_times(timeline)
    ]
    print_table(f"{timeline.title} ({unit} from the launch's first stage)", columns, rows, console)
    prose(console, f"A slice is {timeline.about['slice']}. Clock: {timeline.about['clock']}.")


def _number(time: Any) -> str:
    return "-" if time is None else f"{time:.0f}"
