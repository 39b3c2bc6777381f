"""`warfence serve`: prompts or a trace through the overlap loop, with a fence or, to show why, without one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from warfence import backends
from warfence.cli import options as given
from warfence.cli.exits import CheckFailed, Interrupted
from warfence.cli.output import print_json, prose, say, screens
from warfence.cli.serve_observed import TimelineFile, Watch, check_files, judged, session
from warfence.cli.summary import print_hazard, print_summary
from warfence.cli.view import watch
from warfence.core.errors import StageError
from warfence.serve.jobs.hazard import compare
from warfence.serve.jobs.job import Job, prepare
from warfence.serve.jobs.options import ServeOptions
from warfence.serve.jobs.results import finished, write_results
from warfence.serve.jobs.run_report import run_report
from warfence.serve.requests import Request

FORCED = """\
Now the overlapped loop without a fence. Whether a table write overtakes a read of the running forward is then a matter
of luck; here that order, which the missing fence permits, is forced at every launch, so that luck has no part in it."""


def serve(
    prompts: given.Prompts = None,
    trace: given.Trace = None,
    speed: given.Speed = None,
    share_prefixes: given.SharePrefixes = False,
    chat: given.Chat = False,
    limit: given.Limit = None,
    max_new_tokens: given.MaxNewTokens = None,
    temperature: given.Temperature = 0.0,
    top_p: given.TopP = 1.0,
    seed: given.Seed = 0,
    model: given.ModelDirectory = None,
    backend: given.BackendName = None,
    device: given.Device = "cpu",
    tables: given.Tables = None,
    marker: given.Marker = None,
    ticket: given.Ticket = None,
    fence: given.Fence = "fine",
    allow_hazard: given.AllowHazard = False,
    attention: given.Attention = "captured",
    serial: given.Serial = False,
    rows: given.Rows = 8,
    slots: given.Slots = None,
    mixed: given.Mixed = False,
    idle: given.Idle = False,
    spec: given.Spec = "none",
    draft: given.DraftDirectory = None,
    block: given.Block = None,
    out: given.Out = None,
    watch: Watch = None,
    timeline: TimelineFile = None,
    as_json: given.AsJson = False,
) -> None:
    """Serve prompts and show the texts as they come, then what the fence did.

    --fence off --allow-hazard shows what the fence is for: the same requests without it, beside the right texts.
    --spec changes how many tokens a step brings and which launch reads the tables last, and no token.
    """
    options = ServeOptions(
        backend=backend or backends.installed()[0],
        device=device, tables=tables, marker=marker, ticket=ticket, fence=fence, allow_hazard=allow_hazard, attention=attention,
        serial=serial, rows=rows, slots=slots, mixed=mixed, idle=idle, spec=spec, draft=draft, block=block,
        model=model, prompts=prompts, trace=trace, speed=speed, share_prefixes=share_prefixes, chat=chat,
        limit=limit, max_new_tokens=max_new_tokens,
        temperature=temperature, top_p=top_p, seed=seed, out=out,
    )  # fmt: skip
    check_files(watch, timeline)
    found = carry_out(options, as_json, watch, timeline)
    if as_json:
        print_json(found)
    if found["compilations"]["after"]:
        raise CheckFailed(f"{found['compilations']['after']} programs were compiled after warm-up; please report it")


def carry_out(options: ServeOptions, as_json: bool, log: Path | None, timeline: Path | None = None) -> dict[str, Any]:
    """Serve and return the report; print for people what belongs to it, unless it is printed as JSON."""
    job = prepare(options)
    console, bars = screens(as_json)
    if options.hazard:
        return _hazard(job, console, bars, log, timeline)
    requests = job.workload.requests()
    with (
        keeping(job, requests),
        watch(job, bars, options.backend, show_texts=not as_json) as watcher,
        session(job, watcher, log, timeline) as warm,
    ):
        _announce(console, job)
        outcome = warm.serve(requests)
    report = run_report(job, outcome)
    print_summary(console, report)
    return report | _written(console, log, timeline)


def _hazard(job: Job, console: Console, bars: Console, log: Path | None, timeline: Path | None) -> dict[str, Any]:
    """The serial twin, then the same without a fence in the worst order; exit status 0, for it is a demonstration."""
    requests = job.workload.requests()
    with (
        keeping(job, requests),
        watch(job, bars, job.options.backend, show_texts=False) as watcher,
        session(job, watcher, log, timeline) as warm,
    ):
        _announce(console, job)
        say(console, "First the serial twin: it overlaps nothing, so its texts are right.")
        twin = warm.serve(job.workload.requests(), "serial twin", twin=True)
        prose(console, FORCED)
        outcome = warm.serve(requests, "no fence")
    hazard = compare(job, twin, outcome)
    report = run_report(job, outcome) | {"hazard": hazard.to_json()}
    print_hazard(console, job, hazard)
    print_summary(console, report, title="Summary of the run without a fence")
    return report | _written(console, log, timeline)


def _written(console: Console, log: Path | None, timeline: Path | None) -> dict[str, Any]:
    """What the log says, and where the timeline is; both only where they were wanted."""
    if timeline is not None:
        say(console, f"Written: {timeline}; open it in https://ui.perfetto.dev or chrome://tracing")
    watched = {} if log is None else {"watch": judged(console, log)}
    return watched if timeline is None else watched | {"timeline": str(timeline)}


@contextmanager
def keeping(job: Job, requests: Sequence[Request]) -> Iterator[None]:
    """Write --out when the run ends, in whatever way: what finished before an interrupt or a failure is right."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(_kept(job, requests)) from None
    except StageError as failed:
        raise CheckFailed(f"{failed}; {_kept(job, requests)}") from failed
    _write(job, requests)


def _kept(job: Job, requests: Sequence[Request]) -> str:
    """Write what finished before the end came, if anything did, and say so in a clause."""
    done = len(finished(job, requests))
    had = f"{done} of {len(requests)} requests had finished"
    if job.options.out is None or not done:
        return f"{had}, and nothing was written"
    _write(job, requests)
    return f"{had}; their results are in '{job.options.out}'"


def _write(job: Job, requests: Sequence[Request]) -> None:
    path = job.options.out
    try:
        if path is not None:
            write_results(path, job, requests)
    except OSError as cause:
        raise CheckFailed(f"--out '{path}' cannot be written ({cause.strerror}); the results are lost") from cause


def _announce(console: Console, job: Job) -> None:
    """What is going to be served, once it is sure that it can be."""
    options = job.options
    loop = "serially" if options.serial else f"overlapped, fence {options.fence}"
    spec = f", {job.spec.algorithm.name} in blocks of {job.spec.block}" if job.spec.drafting is not None else ""
    say(
        console,
        f"{len(job.workload.entries)} requests, model {job.model.config.name}, {options.backend} on {options.device},"
        f" {loop}, attention {options.attention}{spec}.",
    )
    for note in job.workload.notes:
        say(console, note)
