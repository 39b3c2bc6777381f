"""The typer application: one file a command. A command file imports its machinery inside the command."""

from __future__ import annotations

from typing import Annotated

import typer

from warfence import __version__


def build_app() -> typer.Typer:
    """Put the commands together. Nothing here imports a framework: `warfence --help` stays quick."""
    from warfence.cli.audit import audit
    from warfence.cli.backends_new import backends_group
    from warfence.cli.bench import bench
    from warfence.cli.boundary import boundary
    from warfence.cli.check import check
    from warfence.cli.demo import demo
    from warfence.cli.doctor import doctor
    from warfence.cli.explain import explain
    from warfence.cli.explore import explore
    from warfence.cli.parity import parity
    from warfence.cli.replay import replay
    from warfence.cli.report import report
    from warfence.cli.serve import serve
    from warfence.cli.sweep import sweep
    from warfence.cli.trace import trace

    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(root)
    for command in (
        demo,
        serve,
        trace,
        parity,
        report,
        boundary,
        audit,
        check,
        explore,
        replay,
        sweep,
        bench,
        explain,
        doctor,
    ):
        app.command()(command)
    app.add_typer(backends_group())
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
