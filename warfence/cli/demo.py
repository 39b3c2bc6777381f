"""`warfence demo`: what the fence is for, in three acts and under a minute, for somebody who never heard of one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from warfence.backends import prepare_environment
from warfence.cli import options as given
from warfence.cli.exits import CheckFailed
from warfence.cli.output import print_json, prose, say, screens
from warfence.cli.summary import print_beside, print_summary
from warfence.cli.text import printable, tail
from warfence.cli.view import watch
from warfence.serve.jobs.demo import jobs, missing, pair, without_fence
from warfence.serve.jobs.divergence import Divergence, differences, split
from warfence.serve.jobs.hazard import compare
from warfence.serve.jobs.job import Job
from warfence.serve.jobs.run_report import run_report
from warfence.serve.jobs.session import Outcome, session

SHOWN = 3  # texts a backend

STORY = """\
While a model computes one batch, a fast LLM server already prepares the next one. Both use the same tables, which say
where in memory the past of each request lies. The scheduler may overwrite a table entry only after the running forward
has read it for the last time. Too early, and a request silently goes on from somebody else's past: a write-after-read
(WAR) hazard. Too late, and nothing overlaps. The fence is a wait that ends right after that last read.
"""
UNFENCED = """\
Whether a write overtakes a read is a matter of luck now; here the bad order is forced, so that it fails the same way
every time."""
FACTS = ("tokens", "sha256", "speed", "steps", "barriers", "rows recycled", "compiled")  # enough for a first look


def demo(
    max_new_tokens: Annotated[int, typer.Option(help="Most tokens to generate a request.")] = 32,
    as_json: given.AsJson = False,
) -> None:
    """Serve the same prompts on two backends, compare the texts, then see what goes wrong without the fence.

    Exits with 1 when the backends choose different tokens and it was no near tie.
    """
    prepare_environment()  # before a framework is imported
    start = time.perf_counter()
    console, bars = screens(as_json)
    prepared = jobs(pair(), max_new_tokens)
    absent = missing([*prepared])
    prose(console, STORY)
    say(console)
    outcomes = {name: _fenced(console, bars, job, name) for name, job in prepared.items()}
    reports = {name: run_report(prepared[name], outcome) for name, outcome in outcomes.items()}
    _summary(console, reports)
    first, *others = outcomes.values()
    real, ties = split(d for other in others for d in differences(other.requests, first.requests))
    _compared(console, first, bool(others), real, ties, absent)
    hazard = _unfenced(console, bars, prepared, first)
    seconds = time.perf_counter() - start
    say(console, f"Done in {seconds:.0f} s. Next: warfence serve --help")
    if as_json:
        equal = len({report["tokens_sha256"] for report in reports.values()}) == 1 if others else None
        found = {"differences": [d.to_json() for d in real], "near_ties": [d.to_json() for d in ties]}
        print_json(
            {"backends": reports, "missing": absent, "comparison": {"equal": equal} | found, "hazard": hazard}
            | {"seconds": seconds}
        )
    if real:
        raise CheckFailed("the backends chose different tokens, and no near tie explains it; please report it")
    if any(report["compilations"]["after"] for report in reports.values()):
        raise CheckFailed("programs were compiled after warm-up; please report it")


def _fenced(console: Console, bars: Console, job: Job, name: str) -> Outcome:
    """One backend with the fence, and the first texts that it wrote."""
    say(console, f"{len(job.workload.entries)} prompts on {name}, with the fence. The first {SHOWN} texts:")
    with watch(job, bars, name, show_texts=False) as watcher, session(job, watcher) as warm:
        outcome = warm.serve(job.workload.requests())
    for request in outcome.requests[:SHOWN]:
        prompt = tail(printable(job.workload.entries[request.id].text))
        say(console, f"  {prompt}|{printable(job.model.tokenizer.decode(request.output))}")
    say(console)
    return outcome


def _summary(console: Console, reports: Mapping[str, Mapping[str, Any]]) -> None:
    print_summary(console, *reports.values(), title="What happened", facts=FACTS)


def _compared(
    console: Console, first: Outcome, both: bool, real: list[Divergence], ties: list[Divergence], absent: dict[str, str]
) -> None:
    """Whether the backends chose the same tokens: a sentence, and one for each request that differs."""
    for name, remedy in absent.items():
        say(console, f"{name} is not installed here, so there is nothing to compare with: {remedy}")
    if both and not real:
        count = sum(len(request.output) for request in first.requests)
        but = f", but for {len(ties)} near ties" if ties else ""
        say(console, f"Equal: both backends chose the same {count} tokens{but}.")
    for one in (*real, *ties):
        kind = "near tie (rounding decides)" if one.near_tie else "DIFFERENT"
        say(console, f"{kind}: request {one.request}, token {one.position + 1}, margin {one.margin:.1e}")
    say(console)


def _unfenced(console: Console, bars: Console, prepared: Mapping[str, Job], fenced: Outcome) -> dict[str, Any]:
    """The first backend again without its fence, compared with its own fenced texts."""
    name, job = next((name, without_fence(job)) for name, job in prepared.items())
    say(console, f"The same prompts on {name}, with the fence off.")
    prose(console, UNFENCED)
    with watch(job, bars, name, show_texts=False) as watcher, session(job, watcher) as warm:
        hazard = compare(job, fenced, warm.serve(job.workload.requests(), "no fence"))
    say(console, f"{len(hazard.wrong)} of {len(hazard.run.requests)} texts are wrong, and no error was raised.")
    if hazard.wrong:
        say(console, "One of them:")
        prompt = job.workload.entries[hazard.wrong[0].request].text
        print_beside(console, prompt, hazard.serial_text, hazard.text, "with the fence")
    say(console)
    return {"backend": name} | hazard.to_json()
