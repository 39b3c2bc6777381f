"""The directive `cli-help`: every command of `warfence` with its options, from the help texts that the commands carry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from warfence.cli.app import build_app
from warfence.cli.lazy import commands_of


def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Each command with its full name, groups before their members."""
    for name, command in commands_of(group).items():
        yield f"{path} {name}", command
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")


def option(param: Any) -> str:
    """One option or argument as an item of a list."""
    is_option = param.param_type_name == "option"
    names = ", ".join([*param.opts, *param.secondary_opts]) if is_option else param.name.upper()
    default = param.show_default if isinstance(param.show_default, str) else param.default
    flag = isinstance(default, bool) or not isinstance(default, int | float | str) or default == ""
    return f"- `{names}`: {param.help or ''}" + ("" if flag else f" Default: {default}.")


def page(name: str, command: Any) -> list[str]:
    """A command: its sentences, then its options, by panel."""
    said = [f"## {name}", "", *re.sub(r"[\b\f]", "", command.help or "").splitlines(), ""]
    panels: dict[str, list[str]] = {"": []}
    for param in command.params:
        panels.setdefault(getattr(param, "rich_help_panel", None) or "", []).append(option(param))
    for panel, options in panels.items():
        said += [f"*{panel}*", ""] if panel else []
        said += [*options, ""]
    return said


class CliHelp(SphinxDirective):
    """Takes no arguments: the commands are found."""

    def run(self) -> list[nodes.Node]:
        app = typer.main.get_command(build_app())
        lines = [line for name, command in commands(app, "warfence") for line in page(name, command)]
        holder = nodes.section()
        holder.document = self.state.document
        self.state.nested_parse(StringList(lines, "cli-help"), self.content_offset, holder, match_titles=True)
        return holder.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("cli-help", CliHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
