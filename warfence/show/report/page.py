"""A report as one HTML page that needs nothing else: no network, no file beside it, light or dark as the reader's system is."""

from __future__ import annotations

from warfence.parity.mutants import MUTANTS
from warfence.parity.overview import COLUMNS
from warfence.parity.report import BAD, notes, problem
from warfence.show.report.contents import Contents
from warfence.show.report.matrix import rows
from warfence.show.templates import templates


def page(contents: Contents) -> str:
    """The whole page, in UTF-8. InputError for a parity report of another version of warfence."""
    report = contents.parity
    return (
        templates("warfence.show.report")
        .get_template("page.html.j2")
        .render(
            contents=contents,
            report=report,
            rows=list(rows(report.cells)),
            columns=COLUMNS,
            notes=notes(report.cells),
            failures=[problem(entry) for entry in report.failures()],
            faults={mutant.id: mutant.sentence for mutant in MUTANTS},
            bad=BAD,
        )
    )
