"""What people read after a run: a table of what happened, and for a run without a fence what went wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from warfence.cli.output import print_table, prose, say
from warfence.cli.text import common_start, printable, tail
from warfence.serve.hazard import Hazard
from warfence.serve.job import Job
from warfence.serve.report import forced_coarse


def print_summary(
    console: Console, *reports: Mapping[str, Any], title: str = "Summary", facts: Collection[str] | None = None
) -> None:
    """One row a fact, each with what it means; several runs of one kind stand side by side. `facts`: only these rows."""
    of_each = [_rows(report) for report in reports]
    rows = [
        (same[0][0], *(value for _, value, _ in same), same[0][2])
        for same in zip(*of_each, strict=True)
        if facts is None or same[0][0] in facts
    ]
    print_table(title, ("what", *(report["backend"] for report in reports), "meaning"), rows, console)


def _rows(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    compiled = report["compilations"]
    loop = "serial" if report["serial"] else f"overlapped, fence {report['fence']}"
    rows = [
        ("run", f"on {report['device']}, {loop}", f"attention {report['attention']}"),
        ("tokens", str(report["generated_tokens"]), f"generated for {report['requests']} requests"),
        ("sha256", f"{report['tokens_sha256'][:12]}…", "of all tokens; equal when the texts are"),
    ]
    if report["completed"]:
        barriers, happened = report["barriers"], report["happened"]
        rows += [
            ("speed", f"{report['tokens_per_s']:.0f} tokens/s", "host time, compiling not counted"),
            ("steps", _counts(report["steps_by_mode"]), "extend reads prompts, decode makes one token a request"),
            ("barriers", _counts(barriers), _barriers(report)),
            ("policies", _counts(report["policies"]), "where each launch published that its table reads are done"),
            ("retractions", str(happened["retractions"]), "requests that gave their memory back and started again"),
            ("evictions", str(happened["evictions"]), "tokens that no sliding layer can see any more"),
            ("later chunks", str(happened["later_chunks"]), "parts of prompts too long for one launch"),
            (
                "rows recycled",
                str(happened["rows_recycled"]),
                "table rows given to a new request: what a race would hit",
            ),
        ]
        if (cost := report["host_us_per_step"]) is not None:
            rows.append(("host", f"{cost:.0f} us a step", "the scheduler's own work, while the model runs"))
    rows.append(
        ("compiled", f"{compiled['warm_up']} + {compiled['after']}", "programs in warm-up + afterwards (must be 0)")
    )
    return rows


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items() if n) or "none"


def _barriers(report: Mapping[str, Any]) -> str:
    if report["serial"]:
        return "nothing overlaps, so nothing is fenced"
    if report["fence"] == "off":
        return "no write waited for a read"
    if forced_coarse(report):
        return "coarse: waited for the whole forward, because WARFENCE_FORCE_COARSE_WAR_BARRIER=1"
    return "fine: writes waited for the last read only; coarse: for the whole forward"


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
