"""The typer application. Command NAME is `warfence.cli.NAME.NAME`, imported when it is called or asked for its help."""

from __future__ import annotations

from typing import Annotated

import typer

from warfence import __version__
from warfence.cli.lazy import lazy_group

# In the order of the list; the line is the first sentence of what the command says of itself.
COMMANDS = {
    "demo": "Serve the same prompts on two backends, compare the texts, then see what goes wrong without the fence.",
    "serve": "Serve prompts and show the texts as they come, then what the fence did.",
    "trace": "Run a few steps of the shipped model and show what ran when: lanes, stages, waits, writes, the read boundary.",
    "parity": "Measure where each backend lets a table write land, cell by cell, and compare; then hold each to the laws.",
    "report": "Write one HTML page that needs no network: press a cell and read where its reads end and its write lands.",
    "boundary": "Show the stages of one forward, its read boundary, and where each backend lets a table write land.",
    "audit": "Compare the declared, the found and the measured read boundary of every mode and attention backend.",
    "check": "Find races, never-recorded waits, stale tickets and over-fencing in an event log, by happens-before.",
    "explore": "Find every interleaving of a scenario that goes wrong, with a witness and the smallest wait that repairs it.",
    "replay": "Force a scenario's worst order on real lanes: bad ones spoil real values, right ones stay intact.",
    "sweep": "Judge families of scenarios by arithmetic, explorer, checker and real lanes, and shrink what two of them "
    "differ about.",
    "bench": "Measure a step behind every strategy of fencing, interleaved in one run: A B C, A B C, ...",
    "explain": "Say where a launch publishes its read-done ticket, and by which rule.",
    "models": "Say what was understood of a model directory, and what of it is not done, without serving it.",
    "doctor": "Report versions, devices, what is missing, and environment variables that hide or change races.",
    "backends": "List the registered backends with their devices and capabilities.",
}


def build_app() -> typer.Typer:
    """The application with the commands' names; `warfence --help` imports none of them, and stays quick."""
    app = typer.Typer(
        cls=lazy_group("warfence.cli", COMMANDS),
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(root)
    return app


def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """A write-after-read fence for overlapped LLM servers: one policy, two backends. New here? Try: warfence demo"""
    if version:
        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
