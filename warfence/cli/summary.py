"""What people read after a run: a table of what happened, and for a run without a fence what went wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from warfence.cli.facts import facts_of
from warfence.cli.output import print_table, prose, say
from warfence.cli.text import common_start, printable, tail
from warfence.serve.jobs.hazard import Hazard
from warfence.serve.jobs.job import Job


def print_summary(
    console: Console, *reports: Mapping[str, Any], title: str = "Summary", facts: Collection[str] | None = None
) -> None:
    """One row a fact, each with what it means; several runs of one kind stand side by side. `facts`: only these rows."""
    of_each = [{name: (value, meaning) for name, value, meaning in facts_of(report)} for report in reports]
    names = dict.fromkeys(name for rows in of_each for name in rows if facts is None or name in facts)
    table = []
    for name in names:
        found = [rows.get(name) for rows in of_each]
        meaning = next(fact[1] for fact in found if fact is not None)
        table.append((name, *("-" if fact is None else fact[0] for fact in found), meaning))
    print_table(title, ("what", *(report["backend"] for report in reports), "meaning"), table, console)


def print_hazard(console: Console, job: Job, hazard: Hazard) -> None:
    """How many texts are wrong, and the first of them beside the right one; or what kept them right."""
    count, launches = len(hazard.run.requests), hazard.landed + hazard.waited
    if hazard.run.refusal is not None:
        prose(console, f"The runtime refused to go on (launches are counted on from the twin's): {hazard.run.refusal}.")
    if hazard.landed:
        say(console, f"At {hazard.landed} of {launches} launches the next writes landed before the launch had read.")
    if hazard.waited:
        say(console, f"At {hazard.waited} of {launches} launches the runtime itself held the next writes back.")
    if hazard.run.guards_writes:
        say(
            console, "This backend's runtime guards its tables itself. To see tables that it does not: --tables aliased"
        )
    if not hazard.wrong:
        say(console, f"No text differs from the serial twin's{'' if hazard.run.summary else ', as far as it came'}.")
        return
    first = hazard.wrong[0]
    say(console, f"{len(hazard.wrong)} of {count} requests came out wrong, without any error being raised.")
    say(console, f"The first is request {first.request}; it goes wrong at token {first.position + 1} of its answer:")
    print_beside(console, job.workload.entries[first.request].text, hazard.serial_text, hazard.text)


def print_beside(console: Console, prompt: str, right: str, wrong: str, source: str = "serial twin") -> None:
    """The two texts side by side, with what differs made visible; without a terminal one below the other.

    source: which run the right text comes from.
    """
    prompt, right, wrong = tail(printable(prompt)), printable(right), printable(wrong)
    same = len(common_start(right, wrong))
    if not console.is_terminal:
        say(console, f"  prompt: {prompt}")
        say(console, f"  right:  {right[:same]} >>> {right[same:]}")
        say(console, f"  wrong:  {wrong[:same]} >>> {wrong[same:]}")
        return
    table = Table(expand=True)
    table.add_column(f"right: {source}", ratio=1)
    table.add_column("wrong: no fence", ratio=1)
    table.add_row(*(
        Text.assemble((prompt, "dim"), text[:same], (text[same:], style))
        for text, style in ((right, "bold green"), (wrong, "bold red"))
    ))  # fmt: skip
    console.print(table)
