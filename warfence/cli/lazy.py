"""A group of commands that imports one when it is called, or asked for its help: the list of all imports none."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup


class Listed(TyperCommand):
    """A command as the list shows it. To go into it is to import `PACKAGE.NAME` and to take NAME from there."""

    def __init__(self, package: str, name: str, line: str) -> None:
        super().__init__(name, help=line)
        self._package = package

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """The command's own context: everything after it, the call and the help, is the command's own."""
        return self.imported().make_context(*args, **kwargs)

    def imported(self) -> Any:
        """The command itself, of a function or of a typer application with commands of its own."""
        found = getattr(import_module(f"{self._package}.{self.name}"), str(self.name))
        application = found if isinstance(found, typer.Typer) else typer.Typer(add_completion=False)
        if application is not found:
            application.command(self.name)(found)
        return typer.main.get_command(application)


def lazy_group(package: str, lines: Mapping[str, str]) -> type[TyperGroup]:
    """The class of a group with these commands (name: its line in the list), each in the module of its name."""

    class Group(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given | {"commands": {name: Listed(package, name, lines[name]) for name in lines}})

    return Group


def commands_of(group: Any) -> dict[str, Any]:
    """Every command of the group by its name, imported. For who reads all of them: docs, tests."""
    return {name: one.imported() if isinstance(one, Listed) else one for name, one in group.commands.items()}
