"""`warfence report`: one page to open in class, with the matrix, a step, laws, catalogue, benchmarks and environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from warfence.bench.document import environment
from warfence.cli import options as given
from warfence.cli import survey
from warfence.cli.contenders import contenders, missing
from warfence.cli.environment import survey as variables
from warfence.cli.exits import CheckFailed
from warfence.cli.meter import metered
from warfence.cli.output import say, screen
from warfence.cli.parity_view import summary
from warfence.host.files import check_output, write_output
from warfence.host.meter import Meter
from warfence.parity.cells import BATCHES, Cell, matrix
from warfence.parity.report import Report
from warfence.parity.selection import read_selection
from warfence.parity.suite import Contender, SuiteOptions, run_suite
from warfence.races.scenarios.groups import groups
from warfence.show.report.contents import Contents
from warfence.show.report.figures import read_bench
from warfence.show.report.page import page
from warfence.show.report.parity_file import read_parity
from warfence.show.report.timelines import step_picture

QUICK = {"decode": ("snapshot", "captured", "live"), "extend+switch": ("snapshot",)}


def report(
    out: Annotated[Path, typer.Argument(metavar="OUT.html", help="The page. One that is there already is replaced.")],
    backend: given.Backends = None,
    device: given.Devices = "cpu",
    quick: Annotated[
        bool, typer.Option("--quick", help="A few telling cells, no laws and no mutants: half a minute.")
    ] = False,
    parity: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Measure no cell: take what `warfence parity --json FILE` wrote."),
    ] = None,
    bench: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Figures of what `warfence bench --out FILE` wrote; may be repeated."),
    ] = None,
    catalogue: Annotated[
        bool, typer.Option(help="Explore the catalogue of programs from public reports.")
    ] = True,
) -> None:  # fmt: skip
    """Write one HTML page that needs no network: press a cell and read where its reads end and its write lands.

    Without --quick and --parity all cells, laws and mutants are run, which takes some minutes. Exits with 1 when something is
    not in order; the page is written then, too. On bad input nothing is written.
    """
    check_output("the report", out)
    benches = [read_bench(path) for path in bench or []]
    read = read_parity(parity) if parity is not None else None
    chosen = contenders(backend or [], device)
    console = screen()
    for name, remedy in missing(backend or []).items():
        say(console, f"{name} is not installed here and is left out: {remedy}")
    with metered(console) as meter:
        measured = read or _measured(chosen, quick, meter)
        measured.missing = measured.missing or missing(backend or [])
        contents = _contents(measured, parity, chosen, device, catalogue, meter)
    contents.benches = benches
    if not benches:
        contents.left_out["bench"] = "no --bench FILE was given"
    if quick and read is None:
        contents.left_out["laws"] = "--quick runs neither laws nor mutants"
    write_output(out, page(contents), "the report")
    say(console, f"Written: {out}")
    if not measured.ok:
        raise CheckFailed(summary(measured))
    if not contents.ok:
        raise CheckFailed("a verdict of the catalogue is not the expected one; the page says which")


def _measured(chosen: Mapping[str, Contender], quick: bool, meter: Meter) -> Report:
    cells = quick_cells() if quick else list(matrix())
    return run_suite(SuiteOptions(chosen, cells, read_selection(None, None), laws=not quick, mutants=not quick), meter)


def quick_cells() -> list[Cell]:
    """Each way to fence, for reads that end before, in and late in the captured forward; one batch size."""
    return [
        cell for cell in matrix(tuple(QUICK)) if cell.attention in QUICK[cell.mode.name] and cell.batch == BATCHES[0]
    ]


def _contents(
    measured: Report, parity: Path | None, chosen: Mapping[str, Contender], device: str, catalogue: bool, meter: Meter
) -> Contents:
    meter.phase("tracing a step", 1)
    picture = step_picture({name: one.target for name, one in chosen.items()}, device)
    if catalogue:
        meter.phase("exploring the catalogue", 1)
    explored = groups() if catalogue else []
    devices = survey.other_devices() if device != "cpu" else []
    found = {str(one["name"]): str(one["value"]) for one in variables() if one["value"] is not None}
    return Contents(
        measured,
        parity_from=parity.name if parity is not None else "",
        about=environment(devices, found),
        timeline=picture,
        catalogue=explored,
        left_out={} if catalogue else {"catalogue": "--no-catalogue was given"},
    )
