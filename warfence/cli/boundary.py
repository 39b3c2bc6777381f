"""`warfence boundary`: one cell of the parity matrix as the list of its stages, with what was measured beside them."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from warfence.cli import options as given
from warfence.cli.contenders import contenders
from warfence.cli.exits import CheckFailed
from warfence.cli.output import print_json, prose, say, screens
from warfence.cli.rule_sets import NAMES, OURS, rule_set
from warfence.core.attention import attention_names
from warfence.core.errors import InputError
from warfence.core.modes import Region, WarReadDonePolicy
from warfence.core.program import ForwardProgram, Stage
from warfence.parity.cells import BATCHES, DONATION, FENCES, Cell, mode_cases
from warfence.parity.honesty import what_failed
from warfence.parity.matrix import CellResult, run_cell
from warfence.parity.probe import END
from warfence.parity.report import in_full, verdicts
from warfence.parity.rig import MakeBackend, Rig, program_of
from warfence.parity.selection import choose
from warfence.parity.small import SmallModel, small_model


def boundary(
    backend: given.Backends = None,
    device: given.Devices = "cpu",
    tables: Annotated[str | None, given.way("tables")] = None,
    marker: Annotated[str | None, given.way("marker")] = None,
    ticket: Annotated[str | None, given.way("ticket")] = None,
    mode: Annotated[
        str,
        typer.Option(
            help="A mode of the matrix: decode, extend, extend+switch, 'extend+switch, later chunk', target_verify+dflash, "
            "target_verify+ngram, target_verify+eagle, draft_extend+eagle, mixed, idle, ..."
        ),
    ] = "decode",
    attention: given.OneAttention = "captured",
    fence: Annotated[str, typer.Option(help="fine, coarse, or donation: no barrier, only the runtime's own hold.")] = "fine",
    no_marker: Annotated[bool, typer.Option("--no-marker", help="Put no marker into the captured forward.")] = False,
    batch: Annotated[int, typer.Option(help="Rows of the batch.")] = 1,
    marker_after: Annotated[
        str | None,
        typer.Option(
            help="Plant the marker after this stage, right or wrong: one stage too early shows as UNSOUND.",
            show_default="where the reads are declared to end",
        ),
    ] = None,
    rules: Annotated[
        str, typer.Option(help=f"Let another rule set decide; unsound ones show it. {NAMES}.")
    ] = "warfence",
    as_json: given.AsJson = False,
) -> None:  # fmt: skip
    """Show the stages of one forward, its read boundary, and where each backend lets a table write land.

    Exits with 1 when that is not where the rules put it, or before the boundary (UNSOUND).
    """
    cell, small, chosen = _cell(mode, attention, fence, not no_marker, batch), small_model(), rule_set(rules)
    program, plan = program_of(cell, small.config, chosen)
    declared = plan.marker_stage(cell.mode.mode)
    if marker_after is not None:
        marker_after = _marker_stage(program, marker_after)
    rigs: dict[str, Rig] = {}
    try:
        for name, contender in contenders(
            backend or [], device, {"tables": tables, "marker": marker, "ticket": ticket}
        ).items():
            rigs[name] = _start(name, contender.make, small)
        result = run_cell(rigs, cell, marker_after, chosen)
    finally:
        for rig in rigs.values():
            rig.backend.close()
    marker = marker_after or declared
    decision = plan.decide(cell.mode.mode, marker is not None)
    console, _ = screens(as_json)
    if as_json:
        stages = [_stage(s) for s in program.stages]
        print_json(result.to_json() | {"rules": rules, "marker_after": marker, "stages": stages})
    else:
        by = "" if rules == OURS else f" by the rules '{rules}'"
        _print(console, program, result, marker, f"Policy {decision.policy.value}{by}: {decision.reason}.")
        if marker_after and decision.policy is not WarReadDonePolicy.IN_GRAPH:
            say(console, f"--marker-after changes nothing here: policy {decision.policy.value} waits for no marker")
    if not result.ok:
        raise CheckFailed(f"{cell.name}: {verdicts(result)}")


def _start(name: str, make: MakeBackend, small: SmallModel) -> Rig:
    """A rig of the backend. CheckFailed, in a sentence, where a backend of somebody else does not start."""
    try:
        return Rig(make(), small)
    except InputError:
        raise
    except Exception as error:
        raise CheckFailed(f"backend '{name}' does not start: {what_failed(error)}") from error


def _cell(mode: str, attention: str, fence: str, marker: bool, batch: int) -> Cell:
    """The cell that is asked for; InputError with the nearest names, or the sizes that there are."""
    cases = {case.name: case for case in mode_cases()}
    (case,), (kind,) = choose("mode", [mode], cases), choose("attention backend", [attention], attention_names())
    (chosen,) = choose("fence", [fence], FENCES)
    if not 1 <= batch <= max(BATCHES):
        raise InputError(f"--batch is {batch}; give 1 to {max(BATCHES)}")
    return Cell(cases[case], kind, marker, chosen, batch)


def _marker_stage(program: ForwardProgram, name: str) -> str:
    """The replay stage of that name: a marker stands in the captured part."""
    (stage,) = choose("stage", [name], [s.name for s in program.stages])
    replay = [s.name for s in program.region(Region.REPLAY)]
    if stage not in replay:
        raise InputError(f"no marker can stand after '{stage}', which is not captured; captured: {', '.join(replay)}")
    return stage


def _stage(stage: Stage) -> dict[str, Any]:
    return {"name": stage.name, "region": stage.region.name.lower(), "reads": list(stage.reads)}


def _print(console: Console, program: ForwardProgram, result: CellResult, marker: str | None, policy: str) -> None:
    first, *others = in_full(result)
    say(console, result.cell.name)
    unfenced = "No barrier here: only the runtime's own hold, a donation, orders the write."
    prose(console, unfenced if result.cell.fence == DONATION else policy)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    region = None
    for stage in program.stages:
        if stage.region is not region:
            region = stage.region
            grid.add_row(Text(region.name.lower(), "bold"), "", "")
        reads = f"reads {', '.join(stage.reads)}" if stage.reads else ""
        grid.add_row(Text(f"  {stage.name}"), reads, Text("; ".join(_marks(stage.name, result, marker)), "cyan"))
    grid.add_row(Text(END, "bold"), "", Text("; ".join(_marks(END, result, marker)), "cyan"))
    console.print(grid)
    for line in others if result.ok else (first, *others):
        say(console, line)


def _marks(stage: str, result: CellResult, marker: str | None) -> list[str]:
    """What is to be said of the moment right after this stage."""
    releases = {name: release for name, release in result.release.items() if release is not None}
    opened = [n for n, r in releases.items() if r.opened == stage and result.cell.fence != DONATION]
    landed = [n for n, r in releases.items() if r.landed == stage]
    marks = ["<- read boundary"] if stage == result.boundary else []
    marks += ["marker"] if stage == marker else []
    marks += [f"barrier opens ({', '.join(opened)})"] if opened else []
    return marks + ([f"write lands ({', '.join(landed)})"] if landed else [])
