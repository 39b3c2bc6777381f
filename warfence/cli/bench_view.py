"""What `warfence bench` shows: a table a case and a line each on what belongs to no strategy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console

from warfence.bench.compare import Change
from warfence.bench.document import Document
from warfence.bench.engine_runs import ServedResult
from warfence.bench.results import CaseResult, StrategyResult
from warfence.bench.rounds import RoundsResult
from warfence.bench.spread import Spread
from warfence.bench.strategies import REFERENCE, STRATEGIES
from warfence.cli.output import print_table, prose, say

COLUMNS = ("strategy", "ticket", "step ms", "quartiles", "/ ideal", f"/ {REFERENCE}", "lead ms", "bubble", "host us")
LEGEND = """\
Medians over blocks of steps, all strategies in turn. ideal: the longer of the forward alone, and the schedule alone behind the
read boundary. lead: the host issued the next launch so long before this one's result came. bubble: share of the time in which
the forward lane stood idle. host: the host's own time a step in writes, launch and barrier."""


ROUNDS_LEGEND = """\
Medians over repetitions, all loops in turn. first token: from a request's arrival, queueing included. forward runs: the share of
the time in which the forward lane ran. The same tokens everywhere."""


def print_results(console: Console, made: Document) -> None:
    """All of it, for people."""
    if not console.is_terminal:
        console.width = max(console.width, 120)  # a pipe has no width
    for case in made.cases:
        _print_case(console, case)
    if made.served:
        _print_served(console, made.served)
    if made.rounds:
        _print_rounds(console, made.rounds)
    if made.cases:
        prose(console, LEGEND)
        for strategy in STRATEGIES:
            say(console, f"  {strategy.name}: {strategy.what}")


def print_changes(
    console: Console, changes: Sequence[Change], differences: Sequence[str], missing: Sequence[str]
) -> None:
    """New over old; where the environment is another one, that comes first."""
    for difference in differences:
        say(console, f"note: the environments differ in {difference}")
    for key in missing:
        say(console, f"note: only the old document has: {key}")
    columns = ("of", "figure", "old", "new", "new / old", "quartiles apart")
    for case, found in groupby(changes, key=lambda change: change.case):
        rows = [(c.of, c.figure, f"{c.old:.3f}", f"{c.new:.3f}", _ratio(c), "yes" if c.apart else "") for c in found]
        print_table(f"New over old: {case}", columns, rows, console)
    if not changes:
        say(console, "note: the two documents have no case in common")


def _ratio(change: Change) -> str:
    return "-" if change.ratio is None else f"{change.ratio:.3f}"


def _print_case(console: Console, case: CaseResult) -> None:
    parameters = (
        f"{case.parameters / 1e6:.1f} M parameters" if case.parameters < 1e9 else f"{case.parameters / 1e9:.2f} B"
    )
    title = f"{case.backend} on {case.device}: {case.case.name} ({parameters})"
    rows = [_row(name, found) for name, found in case.strategies.items()]
    print_table(title, COLUMNS, rows, console)
    say(
        console,
        f"  ideal {_of(case.ideal_ms)} ms: forward alone {_of(case.forward_ms)}, schedule alone {_of(case.schedule_ms)}, "
        f"begin to read boundary {_of(case.boundary_ms)}",
    )
    costs = ", ".join(f"{name} {cost.median:.2f}" for name, cost in case.host_costs_us.items())
    share = case.fence_share_of_step
    over_off = f"; over off {100 * share:.2f} % of a step" if share is not None else ""
    say(console, f"  publish + barrier, us of the host: {costs}{over_off}")
    latency = (
        f"{_of(case.barrier_latency_us, 1)} us"
        if case.barrier_latency_us
        else f"not measured ({case.no_barrier_latency})"
    )
    say(console, f"  barrier latency, boundary to first thing behind it: {latency}")
    if case.memory is not None and (growth := case.memory.growth_bytes_per_step) is not None:
        steps, (early, late) = case.memory.steps, case.memory.resident_bytes
        told = f"{(early or 0) / 1e6:.1f} MB after {steps[0]} steps, {(late or 0) / 1e6:.1f} MB after {steps[1]}"
        reported = case.memory.reported_bytes
        flat = "as before" if reported[0] == reported[1] else "NOT as before"
        say(console, f"  memory: {told} ({growth:.0f} bytes a step); tables, state and weights {flat}")
    for name, reason in case.unavailable.items():
        say(console, f"  {name} not measured: {reason}")
    say(console)


def _row(name: str, found: StrategyResult) -> tuple[str, ...]:
    host = [found.writes_us, found.execute_us, found.barrier_us]
    bubble, lead, over = found.bubble, found.lead_ms, found.over_in_graph
    return (
        name,
        "-" if found.fence in ("serial", "off", "self", "coarse") else found.policy,
        f"{found.step_ms.median:.3f}",
        f"{found.step_ms.low:.3f} to {found.step_ms.high:.3f}",
        f"{found.over_ideal.median:.3f}",
        f"{over.median:.2f}" if over is not None else "-",
        f"{lead.median:.2f}" if lead is not None else "-",
        f"{100 * bubble.median:.0f} %" if bubble is not None else "-",
        f"{sum(spread.median for spread in host if spread is not None):.0f}",
    )


def _print_served(console: Console, found: Sequence[ServedResult]) -> None:
    columns = ("served", "requests", "prefill", "fine tokens/s", "fine / coarse", "fine / self")
    rows = [
        (
            f"{r.backend} on {r.device}: {r.axis} {r.value}", str(r.requests), f"{100 * r.prefill_share:.0f} % of steps",
            f"{r.tokens_per_s['fine'].median:.0f}", _of(r.fine_over["coarse"]), _of(r.fine_over["self"]),
        )
        for r in found
    ]  # fmt: skip
    print_table("Throughput of the engine with the shipped model, ratios with quartiles", columns, rows, console)


def _print_rounds(console: Console, found: Sequence[RoundsResult]) -> None:
    columns = ("loop", "prefill", "fine barriers", "first token ms", "p90", "p99", "next token ms", "p90", "p99", "forward runs",
               "tokens/s")  # fmt: skip
    for title, alike in groupby(
        found, key=lambda r: f"{r.backend} on {r.device}: {r.turns} turns of {r.requests} requests"
    ):
        rows = [
            (
                r.loop, "publishes" if r.prefill else "coarse", f"{r.fine_barriers} of {r.steps}",
                *(f"{spread.median:.2f}" for waits in (r.ttft_ms, r.itl_ms) for spread in waits.values()),
                "-" if r.occupancy is None else f"{100 * r.occupancy.median:.1f} %", f"{r.tokens_per_s.median:.0f}",
            )
            for r in alike
        ]  # fmt: skip
        print_table(title, columns, rows, console)
    prose(console, ROUNDS_LEGEND)


def _of(spread: Spread, digits: int = 3) -> str:
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f} to {spread.high:.{digits}f})"
