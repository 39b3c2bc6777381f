"""`warfence backends`: alone it lists them; `new NAME` writes a package, `check NAME` says what is missing from one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from warfence.backends import available, load
from warfence.cli import options as given
from warfence.cli import survey
from warfence.cli.exits import CheckFailed
from warfence.cli.output import print_json, print_table, say, screen
from warfence.parity.scaffold.package import class_name, write_package
from warfence.parity.scaffold.unwritten import still_to_write

backends = typer.Typer(name="backends", invoke_without_command=True, add_completion=False)


@backends.callback()
def listing(context: typer.Context, as_json: given.AsJson = False) -> None:
    """List the registered backends with their devices and capabilities."""
    if context.invoked_subcommand is not None:
        return
    found = report()
    if as_json:
        print_json({"backends": found})
        return
    rows = [[entry["name"], entry["target"], entry["device"] or "-", entry["error"] or "starts"] for entry in found]
    print_table("Backends", ("backend", "target", "device", "status"), rows)
    started = [entry for entry in found if not entry["error"]]
    names = dict.fromkeys(name for entry in started for name in entry["capabilities"])
    print_table(
        "Capabilities",
        ("capability", *(entry["name"] for entry in started)),
        [[name, *(_capability(entry, name) for entry in started)] for name in names],
    )


def report() -> list[dict[str, Any]]:
    """One entry a backend: name, target, error (None: it starts), device, capabilities, reasons for each lack."""
    blank: dict[str, Any] = {"error": None, "device": None, "capabilities": {}, "reasons": {}}
    return [
        {"name": name, "target": one.factory} | blank | survey.ask(f"backend:{name}")
        for name, one in available().items()
    ]


def _capability(entry: dict[str, Any], name: str) -> str:
    if entry["capabilities"].get(name):
        return "yes"
    return f"no: {entry['reasons'][name]}" if name in entry["reasons"] else "no"


@backends.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the backend, and of its package.")],
    directory: Annotated[Path, typer.Option("--dir", help="Where to make the package's folder.")] = Path(),
) -> None:
    """Write a package for a new backend, in which every method says what it must do."""
    target, files = write_package(name, directory)
    console = screen()
    for file in files:
        say(console, str(target / file))
    say(console, f"Next: cd {target} && warfence backends check {name}.backend:{class_name(name)}")


@backends.command()
def check(
    name: Annotated[str, typer.Argument(help="A backend's name, or a dotted path pkg.mod:attr.")],
    as_json: given.AsJson = False,
) -> None:
    """Say which methods of a backend are still to write. Exit 1 while any is."""
    missing = still_to_write(load(name))
    if as_json:
        print_json(
            {"backend": name, "ok": not missing, "missing": [{"method": m.method, "duty": m.duty} for m in missing]}
        )
    elif missing:
        print_table("Still to write", ("method", "what it must do"), [(m.method, m.duty) for m in missing])
    else:
        say(screen(), f"Nothing is missing. Next: pytest --pyargs parity_tests --backend {name}")
    if missing:
        raise CheckFailed(f"backend '{name}': {len(missing)} methods are still to write")
