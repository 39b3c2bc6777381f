"""`warfence audit`: do the declarations say where the shared reads end? Declared, found by a trace, seen by overwriting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from warfence.cli import options as given
from warfence.cli.contenders import contenders
from warfence.cli.exits import CheckFailed
from warfence.cli.output import print_json, print_table, prose, say, screens
from warfence.core.attention import attention_names
from warfence.parity.audit.audit import Audited, audit_cell, cells
from warfence.parity.cells import mode_cases
from warfence.parity.rig import Rig
from warfence.parity.selection import choose
from warfence.parity.small import small_model


def audit(
    backend: given.Backends = None,
    device: given.Devices = "cpu",
    tables: Annotated[str | None, given.way("tables")] = None,
    marker: Annotated[str | None, given.way("marker")] = None,
    ticket: Annotated[str | None, given.way("ticket")] = None,
    mode: given.Modes = None,
    attention: given.Attentions = None,
    measure: Annotated[
        bool, typer.Option(help="Overwrite the tables under held forwards, too; without it only traces are compared.")
    ] = True,
    as_json: given.AsJson = False,
) -> None:
    """Compare the declared, the found and the measured read boundary of every mode and attention backend.

    Exit status: 0 all equal, 1 a declaration is wrong, with the stage that reads late and its code, 2 bad input.
    """
    modes = choose("mode", mode or [], {case.name: case for case in mode_cases()})
    wanted = cells(modes, choose("attention backend", attention or [], attention_names()))
    console, progress = screens(as_json)
    rigs: dict[str, Rig] = {}
    try:
        for name, contender in contenders(
            backend or [], device, {"tables": tables, "marker": marker, "ticket": ticket}
        ).items():
            rigs[name] = Rig(contender.unguarded(), small_model(), contender.unguarded)
        for rig in rigs.values() if measure else ():
            rig.prepare(wanted)  # a backend may compile several at once
        results = [
            audit_cell(rigs, cell, measure)
            for cell in track(wanted, "audit", console=progress, transient=True, disable=not progress.is_terminal)
        ]
    finally:
        for rig in rigs.values():
            rig.backend.close()
    wrong = [result for result in results if result.problems]
    if as_json:
        print_json({"ok": not wrong, "device": device, "cells": [result.document() for result in results]})
    else:
        _print(console, results, rigs)
    if wrong:
        raise CheckFailed(f"{len(wrong)} of {len(results)} declarations are not what was found or measured")


def _print(console: Console, results: list[Audited], rigs: Mapping[str, Rig]) -> None:
    def row(result: Audited) -> list[str]:
        seen = [_seen(result, name) for name in rigs]
        return [result.mode, result.attention, result.ends, result.policy, result.boundary, *seen]

    columns = ["mode", "attention", "reads end", "policy", "last stage that declares a read", *rigs]
    print_table("Declared, and as found and measured", columns, map(row, results), console)
    for result in results:
        for problem in result.problems:
            say(console, f"{result.mode} / {result.attention}: {problem}")
    for note in dict.fromkeys(f"{name}: {note}" for result in results for name, note in result.notes.items()):
        say(console, note)
    prose(
        console,
        "found: by tracing the kernels. compiled: by the text of the compiled modules, if any. graph: by the parameters of the "
        "captured graph's nodes, if any. measured: the forward stands at a gate, all tables are overwritten, and the last stage "
        "behind which that still changes an output or the private state is the one that reads last.",
    )


def _seen(result: Audited, name: str) -> str:
    """What a backend shows, in a word where it is what is declared."""
    said = {"found": result.found.get(name), "compiled": result.compiled.get(name)}
    said |= {"graph": result.graph.get(name), "measured": result.measured.get(name)}
    equal = [how for how, stage in said.items() if stage == result.boundary]
    other = [f"{how} {stage}" for how, stage in said.items() if stage not in (None, result.boundary)]
    return "; ".join([*([f"{' and '.join(equal)} there"] if equal else []), *other]) or "-"
