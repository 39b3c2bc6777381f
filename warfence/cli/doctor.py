"""`warfence doctor`: what is installed, what it runs on, and what in the environment hides or moves a race."""

from __future__ import annotations

import platform
import sys
from typing import Any

import typer

from warfence import __version__, backends
from warfence.cli import environment, packages, survey
from warfence.cli import options as given
from warfence.cli.output import print_json, print_table

_NOTHING = "No backend can run here: install {}."


def doctor(as_json: given.AsJson = False) -> None:
    """Report versions, devices, what is missing, and environment variables that hide or change races.

    Exits with 1 when no backend can run here.
    """
    found = report()
    if as_json:
        print_json(found)
    else:
        _print(found)
    if not found["usable"]:
        raise typer.Exit(1)


def report() -> dict[str, Any]:
    """The whole report as one JSON document."""
    installed = packages.survey()
    present = {package.name for package in installed if package.status == "ok"}
    needed = {
        name: {packages.name_of(line) for lines in one.requirements.values() for line in lines}
        for name, one in packages.frameworks().items()
    }
    answers = {name: survey.ask(f"framework:{name}") for name, names in needed.items() if names <= present}
    devices = [device for answer in answers.values() for device in answer.get("devices", ())]
    where = {name: best_device(name, answer) for name, answer in answers.items() if not answer["error"]}
    return {
        "warfence": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": [package.to_json() for package in installed],
        "devices": devices,
        "ways": {f"{name} on {at}": survey.ask(f"backend:{name}@{at}").get("ways", {}) for name, at in where.items()},
        "broken": {name: answer["error"] for name, answer in answers.items() if answer["error"]},
        "environment": environment.survey(),
        "advice": advice(installed, devices),
        "usable": any(not answer["error"] for answer in answers.values()),
    }


def best_device(name: str, answer: survey.Answer) -> str:
    """The last device that the backend says it has, if its framework sees more than the CPU here; else the CPU."""
    known = backends.package(name).devices or ("cpu",)
    return known[-1] if any(device["platform"] != "cpu" for device in answer["devices"]) else known[0]


def advice(installed: list[packages.Package], devices: list[dict[str, Any]]) -> list[str]:
    """One line for each group of packages that is missing or too old, and for each device that is left out."""
    on_gpu = {device["framework"] for device in devices if device["platform"] != "cpu"}
    lines = []
    frameworks = packages.frameworks()
    for extra in packages.requirements():
        wanted = [package for package in installed if package.extra == extra and package.status != "ok"]
        whose = {name for name, one in frameworks.items() if extra in one.on_device}
        if wanted and (not whose or whose & on_gpu):  # without a GPU its packages are of no use
            lines.append(f"{extra}: {packages.pip_line(wanted)}")
    blind = {device["framework"] for device in devices} - on_gpu
    for name, one in frameworks.items():
        if on_gpu and name in blind and one.install_on_device:
            lines.append(f"{name} sees no GPU although {' and '.join(sorted(on_gpu))} does: {one.install_on_device}")
    return lines


def _print(found: dict[str, Any]) -> None:
    typer.echo(f"warfence {found['warfence']}, Python {found['python']} ({sys.executable}), {found['platform']}\n")
    rows = [[entry["name"], entry["version"] or "-", entry["status"], entry["extra"]] for entry in found["packages"]]
    print_table("Packages", ("package", "version", "status", "extra"), rows)
    print_table(
        "Devices",
        ("framework", "platform", "device"),
        [[device["framework"], device["platform"], device["name"]] for device in found["devices"]],
    )
    typer.echo("Ways to let a write go at the read boundary")
    for name, ways in found["ways"].items():
        typer.echo(f"  {name}: {', '.join(way for way, why in ways.items() if not why) or 'none that it tells of'}")
        for way, why in ways.items():
            if why:
                typer.echo(f"      no {way}: {why}")
    typer.echo()
    typer.echo("Environment variables that hide or move races")
    for variable in found["environment"]:
        value = "is not set" if variable["value"] is None else f"= {variable['value']}"
        typer.echo(f"  {variable['name']} {value}\n      {variable['effect']}")
    typer.echo()
    for name, problem in found["broken"].items():
        typer.echo(f"{name} is installed but does not start: {problem}")
    for line in found["advice"]:
        typer.echo(f"To add {line}")
    typer.echo("A backend can run here." if found["usable"] else _NOTHING.format(" or ".join(packages.frameworks())))
