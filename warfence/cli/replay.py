"""`warfence replay`: the witness of a scenario, forced on real lanes, with the values that it spoils."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track

from warfence.cli import options as given
from warfence.cli import words
from warfence.cli.contenders import prepare
from warfence.cli.exits import DONE, FAILED
from warfence.cli.explore import set_values
from warfence.cli.output import print_json, print_table, say, screens
from warfence.cli.trace import write_timelines
from warfence.core.errors import InputError
from warfence.host.files import check_output
from warfence.races.replay.registry import installed, machines
from warfence.races.replay.values import place
from warfence.races.replay.verdicts import Replayed, replay_fixed
from warfence.races.replay.verdicts import replay as replay_one
from warfence.races.scenarios.library import catalogue as all_scenarios
from warfence.races.scenarios.library import find
from warfence.races.scenarios.parse import read
from warfence.show.timeline.replayed import timeline


def replay(
    file: given.ScenarioFile = "",
    catalogue: Annotated[bool, typer.Option("--catalogue", help="Replay every scenario that warfence has.")] = False,
    backend: Annotated[
        list[str] | None,
        typer.Option(help=words.REPLAYING, show_default="those that are installed"),
    ] = None,
    device: Annotated[str, typer.Option(help=words.DEVICE)] = "cpu",
    fixed: Annotated[
        bool, typer.Option("--fixed", help="Try the same order in the repaired twin, or all of the fixed one.")
    ] = False,
    parameters: given.Parameters = None,
    timeline: Annotated[
        Path | None,
        typer.Option(help="Write what ran when as Trace Event JSON; of one scenario, each backend a process."),
    ] = None,
    as_json: given.AsJson = False,
) -> None:
    """Force a scenario's worst order on real lanes: bad ones spoil real values, right ones stay intact.

    Exit status: 0 all as expected and as explored, 1 something is not, 2 bad input.
    """
    if bool(file) == catalogue:
        raise InputError(f"{'a file and' if file else 'neither a file nor'} --catalogue; give one of the two")
    if timeline is not None and catalogue:
        raise InputError("--timeline is of one scenario; name one instead of --catalogue")
    check_output("--timeline", timeline)
    prepare()
    path = Path(file)
    scenarios = all_scenarios() if catalogue else (read(path) if path.suffix or path.exists() else find(file),)
    if fixed and catalogue:
        scenarios = tuple(one for one in scenarios if one.fixed_by)
    values = set_values(parameters or [])
    kinds = [one for name in dict.fromkeys(backend or installed()) for one in machines(name, device)]
    console, progress = screens(as_json)
    found: dict[tuple[str, str], Replayed] = {}  # several scenarios may have one fixed twin
    for scenario in track(scenarios, "replay", console=progress, transient=True, disable=not progress.is_terminal):
        for kind in kinds:
            one = (replay_fixed if fixed else replay_one)(scenario, kind, values)
            found[one.id, kind.name] = one
    results = [*found.values()]
    names = [kind.name for kind in kinds]
    if timeline is not None:
        _write(timeline, results)
    if as_json:
        print_json({"device": device, **_counts(results, names), "results": [one.document() for one in results]})
    elif catalogue:
        _print_all(console, results, names)
    else:
        for one in results:
            _print_one(console, one)
    raise typer.Exit(DONE if all(one.agrees for one in results) else FAILED)


def _write(path: Path, results: list[Replayed]) -> None:
    """The timelines of what was run; InputError where nothing was."""
    made = [timeline(f"{one.id} on {one.machine}", one.worst.attempt, one.worst.times) for one in results if one.shown]
    if not made:
        raise InputError("--timeline: nothing was run, so there is nothing to write")
    write_timelines("--timeline", path, *made)


def _counts(results: list[Replayed], names: list[str]) -> dict[str, Any]:
    played = {name: [one for one in results if one.machine == name] for name in names}
    return {
        "agree": sum(one.agrees for one in results),
        "disagree": sum(not one.agrees for one in results),
        "support": {name: sum(not one.lacks for one in ones) / len(ones) for name, ones in played.items()},
    }


def _print_all(console: Console, results: list[Replayed], names: list[str]) -> None:
    rows: dict[str, list[str]] = {}
    for one in results:
        row = rows.setdefault(one.id, [one.group, one.id, one.expect])
        row.append((one.verdict or "-") if one.agrees else f"{one.verdict}, NOT as expected")
    print_table("catalogue", ("group", "scenario", "expected", *names), rows.values(), console)
    for one in results:
        if not one.agrees:
            _print_one(console, one)
    for name in names:
        mine = [one for one in results if one.machine == name]
        lacking: dict[str, list[str]] = {}
        for one in mine:
            if one.lacks:
                lacking.setdefault(one.lacks, []).append(one.id)
        say(console, f"{name}: {len(mine) - sum(map(len, lacking.values()))} of {len(mine)} scenarios expressed")
        for reason, ids in lacking.items():
            say(console, f"  not {', '.join(ids)}: {reason}")
    wrong = sum(not one.agrees for one in results)
    say(console, f"{len(results) - wrong} verdicts as expected and as explored, {wrong} not")


def _print_one(console: Console, one: Replayed) -> None:
    if one.lacks:
        say(console, f"{one.id} on {one.machine}: not expressed: {one.lacks}")
        return
    rows = [
        (place(shown.held) if shown.held else "-", place(shown.tried) if shown.tried else "-", shown.verdict)
        for shown in one.shown
    ]
    print_table(f"{one.id} on {one.machine}", ("stands at its gate", "tried meanwhile", "shown"), rows, console)
    how = "as expected" if one.agrees else f"NOT as expected, which is {one.expect} (explored: {one.explored})"
    say(console, f"{one.id} on {one.machine}: {one.verdict}, {how}: {one.worst.said}")
