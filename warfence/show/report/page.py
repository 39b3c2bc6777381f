"""A report as one HTML page that needs nothing else: no network, no file beside it, light or dark as the reader's system is."""

from __future__ import annotations

from warfence.parity.mutants import MUTANTS
from warfence.parity.overview import COLUMNS
from warfence.parity.report import BAD, notes, problem
from warfence.show.report.contents import Contents
from warfence.show.report.matrix import rows


def page(contents: Contents) -> str:
    """The whole page, in UTF-8. InputError for a parity report of another version of warfence."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("warfence.show.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    report = contents.parity
    return environment.get_template("page.html.j2").render(
        contents=contents,
        report=report,
        rows=list(rows(report.cells)),
        columns=COLUMNS,
        notes=notes(report.cells),
        failures=[problem(entry) for entry in report.failures()],
        faults={mutant.id: mutant.sentence for mutant in MUTANTS},
        bad=BAD,
    )
