"""`warfence report`: one page to open in class, with the matrix, a step, laws, catalogue, benchmarks and environment."""

from __future__ import annotations

import os
import tempfile
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
from warfence.core.errors import InputError
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
    check_out(out)
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
    write_page(out, page(contents))
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


def check_out(path: Path) -> None:
    """InputError now, and not after minutes of work, when the page cannot be written."""
    what = None
    if path.is_dir():
        what = "is a folder; give a file"
    elif not path.parent.is_dir():
        what = f"cannot be written: there is no folder '{path.parent}'; make it first"
    elif not os.access(path.parent, os.W_OK) or (path.exists() and not path.is_file()):
        what = "cannot be written; give a file in a folder that is writable"
    if what is not None:
        raise InputError(f"'{path}' {what}, such as report.html")


def write_page(path: Path, text: str) -> None:
    """Whole or not at all: beside it first, then in its place. CheckFailed where that fails."""
    beside = None
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, suffix=".html", delete=False) as file:
            beside = Path(file.name)
            file.write(text)
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    except OSError as cause:
        if beside is not None:
            beside.unlink(missing_ok=True)
        raise CheckFailed(f"'{path}' cannot be written ({cause.strerror})") from cause


def _umask() -> int:
    """What a file made here would not be allowed."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
