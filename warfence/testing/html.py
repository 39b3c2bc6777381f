"""A report as one HTML page that needs nothing else: no script, no network, light or dark as the reader's system is."""

from __future__ import annotations

from importlib.resources import files

from warfence.testing.overview import COLUMNS, LEGEND, rows
from warfence.testing.report import Report, notes, problem, reading


def html(report: Report) -> str:
    """The page: the verdict, the matrix, what failed in full, laws, mutants, and every cell."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("warfence.testing").joinpath("report.html.j2").read_text("utf-8"))
    return template.render(
        report=report,
        rows=list(rows(report.cells)),
        columns=COLUMNS,
        legend=LEGEND,
        notes=notes(report.cells),
        failures=[problem(entry) for entry in report.failures()],
        reading=reading,
    )
