"""`warfence backends`, the group: the list, `new NAME` (writes a package) and `check NAME` (says what is missing)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from warfence.cli.exits import CheckFailed
from warfence.cli.output import JsonFlag, print_json, print_table, say, screen


def backends_group() -> typer.Typer:
    """The command `backends`: alone it lists."""
    from warfence.cli.backends import backends

    group = typer.Typer(name="backends", invoke_without_command=True)

    @group.callback(help=backends.__doc__)
    def listing(context: typer.Context, as_json: JsonFlag = False) -> None:
        if context.invoked_subcommand is None:
            backends(as_json)

    group.command("new")(new)
    group.command("check")(check)
    return group


def new(
    name: Annotated[str, typer.Argument(help="Name of the backend, and of its package.")],
    directory: Annotated[Path, typer.Option("--dir", help="Where to make the package's folder.")] = Path(),
) -> None:
    """Write a package for a new backend, in which every method says what it must do."""
    from warfence.parity.scaffold.package import class_name, write_package

    target, files = write_package(name, directory)
    console = screen()
    for file in files:
        say(console, str(target / file))
    say(console, f"Next: cd {target} && warfence backends check {name}.backend:{class_name(name)}")


def check(
    name: Annotated[str, typer.Argument(help="A backend's name, or a dotted path pkg.mod:attr.")],
    as_json: JsonFlag = False,
) -> None:
    """Say which methods of a backend are still to write. Exit 1 while any is."""
    from warfence.backends import load
    from warfence.parity.scaffold.unwritten import still_to_write

    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # the console script does not look there, `python -m` does
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
