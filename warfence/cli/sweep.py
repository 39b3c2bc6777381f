"""`warfence sweep`: families of scenarios, each judged several ways; judges that disagree are a failure."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from warfence.cli import options as given
from warfence.cli import words
from warfence.cli.exits import CheckFailed, Interrupted
from warfence.cli.output import print_json, print_table, say, screens
from warfence.core.errors import InputError
from warfence.host.files import check_output, write_output
from warfence.parity.selection import choose
from warfence.races.replay.registry import devices, replaying
from warfence.races.scenarios.program import VERDICTS
from warfence.races.sweep.families import FAMILIES
from warfence.races.sweep.options import Chunk, SweepOptions
from warfence.races.sweep.results import Results
from warfence.races.sweep.tally import document, failures, shrunk
from warfence.races.sweep.work import Judged, judges_of, spread

NONE = "none"
MOST_SHOWN = 10  # disagreements with a line each; --json and --out have all


def sweep(
    family: Annotated[
        list[str] | None,
        typer.Option(help="fence, ring, short (these are exhaustive), random or fenced; may be repeated.", show_default="all"),
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option(help=f"Whose lanes judge, too: none, {words.REPLAYING}", show_default="none"),
    ] = None,
    device: given.Devices = "cpu",
    steps: Annotated[
        int, typer.Option(help="The most turns of a loop, and the most sentences of a short program.", min=1, max=8)
    ] = 3,
    limit: Annotated[
        int | None, typer.Option(help="Cases of each family.", show_default="all; 1000 random ones", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of random programs, and of what --limit chooses.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes; 0: one a core.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep what is done: a JSON document a line.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what --out has.")] = False,
    as_json: given.AsJson = False,
) -> None:  # fmt: skip
    """Judge families of scenarios by arithmetic, explorer, checker and real lanes, and shrink what two of them differ about.

    Exit status: 0 all agree, 1 two judges differ, 2 options that cannot be, 130 interrupted.
    """
    if resume and out is None:
        raise InputError("--resume goes on with a file; give --out")
    check_output("--out", out)
    plan = SweepOptions(_families(family or []), steps, limit, seed, _backends(backend or [], device), device)
    chunks = plan.chunks()
    judges_of(plan)  # what is missing for the lanes is said now, and not by each worker
    results = Results(out, plan, resume) if out else None
    console, bars = screens(as_json)
    start, judged = time.perf_counter(), results.kept if results else []
    try:
        for one in _watched(bars, plan, chunks, workers or os.cpu_count() or 1, judged):
            judged.append(one)
            if results:
                results.add(one)
        made = document(plan, judged, shrunk(plan, failures(judged)), time.perf_counter() - start)
    except KeyboardInterrupt:
        kept = f"are kept in {out}: the same options with --resume go on" if out else "are lost: --out would keep them"
        raise Interrupted(f"{sum(one.cases for one in judged)} cases had been judged, and {kept}") from None
    if results:
        results.finish(made)
    _show(console, made)
    _write_programs(console, out, made)
    if as_json:
        print_json(made)
    if made["failures"]:
        raise CheckFailed(f"judges disagree about {made['failures']} of {made['cases']} cases")


def _watched(
    console: Console, plan: SweepOptions, chunks: Sequence[Chunk], workers: int, judged: Sequence[Judged]
) -> Iterator[Judged]:
    """All chunks that are not judged yet, under a bar on a terminal."""
    done = {one.chunk for one in judged}
    left = [one for one in chunks if one.number not in done]
    columns = (TextColumn("cases"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("cases", total=sum(len(one.indices) for one in chunks))
        progress.advance(task, sum(one.cases for one in judged))
        for one in spread(plan, left, workers):
            progress.advance(task, one.cases)
            yield one


def _show(console: Console, made: dict[str, Any]) -> None:
    columns = ("family", "cases", *VERDICTS, "differ", "cases/s")
    rows = [
        [
            name,
            str(one["cases"]),
            *(str(one["verdicts"].get(verdict, 0)) for verdict in VERDICTS),
            str(one["failures"]),
            f"{one['cases'] / one['worker_seconds']:.0f}" if one["worker_seconds"] else "-",
        ]
        for name, one in made["families"].items()
    ]
    print_table("Families of scenarios (cases/s: of one worker)", columns, rows, console)
    for name, one in made["families"].items():
        say(console, f"{name}, cases judged: {', '.join(f'{judge} {count}' for judge, count in one['judged'].items())}")
    for one in made["disagreements"][:MOST_SHOWN]:
        said = ", ".join(f"{judge} says {verdict}" for judge, verdict in one["said"].items())
        say(console, f"{one['family']}-{one['index']}: {said}")
    if (more := len(made["disagreements"]) - MOST_SHOWN) > 0:
        say(console, f"and {more} more")
    say(console, f"{made['cases']} cases, {made['failures']} disagreements, {made['seconds']:.1f} s")


def _write_programs(console: Console, out: Path | None, made: dict[str, Any]) -> None:
    """Print each shrunk program, and write it beside the result."""
    for one in made["shrunk"]:
        say(console)
        console.print(one["program"], end="", soft_wrap=True)
        if out:
            path = out.with_name(f"{out.stem}-{one['id']}.scenario")
            write_output(path, one["program"])
            say(console, f"Written: {path}")


def _families(names: list[str]) -> tuple[str, ...]:
    """In one order, so that a resumed sweep is the same one. InputError: no such family."""
    chosen = choose("family", names, FAMILIES) or tuple(FAMILIES)
    return tuple(name for name in FAMILIES if name in chosen)


def _backends(names: list[str], device: str) -> tuple[str, ...]:
    """In one order. InputError: no such backend or device, or `none` together with a backend."""
    choose("device", [device], devices())
    dotted = tuple(dict.fromkeys(name for name in names if ":" in name))
    known = choose("backend", [name for name in names if name not in dotted], (*replaying(), NONE))
    chosen = (*known, *dotted)
    if NONE in chosen and len(chosen) > 1:
        raise InputError(f"--backend none is for no lanes at all, and {', '.join(chosen)} are given; leave one out")
    return (*(name for name in replaying() if name in known), *dotted)
