"""The fence in whole runs of the engine, with the shipped model: how the share of prefill, and speculation, change its worth.

The requests are the same in every run, and so must be their tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warfence.bench.cases import ROUNDS
from warfence.bench.group import Open
from warfence.bench.spread import Spread
from warfence.core.errors import InputError, WarfenceError
from warfence.core.modes import FenceMode
from warfence.host.meter import Meter
from warfence.serve.engine import Engine, Summary
from warfence.serve.jobs.job import Job, prepare
from warfence.serve.jobs.options import ServeOptions

FENCES = (FenceMode.FINE, FenceMode.COARSE, FenceMode.SELF)
NEW_TOKENS = (4, 16, 64)  # the most of each request: the fewer, the larger the share of prefill
SPECS = ("none", "dflash")
AT_ONCE = 1e9  # how much faster than in the trace requests arrive: all at once, so that no run waits for one
NO_TRACE = "the axis {} serves a real trace; give --trace FILE.csv (TIMESTAMP,ContextTokens,GeneratedTokens)"


@dataclass(frozen=True, slots=True)
class ServedResult:
    """Runs of one workload behind each fence. prefill_share: of the steps, those that read prompts.

    fine_over: throughput of the fine fence over another's, round by round.
    """

    backend: str
    device: str
    axis: str
    value: str
    requests: int
    tokens: int
    prefill_share: float
    tokens_per_s: Mapping[str, Spread]
    host_us_per_step: Mapping[str, Spread]
    fine_over: Mapping[str, Spread]


def check(axes: Sequence[str], trace: Path | None) -> None:
    """InputError where an axis lacks what it needs."""
    for axis in axes:
        if axis in ("prefill", ROUNDS) and trace is None:
            raise InputError(NO_TRACE.format(axis))


def jobs(axis: str, device: str, trace: Path | None, requests: int) -> list[tuple[str, Job]]:
    """(value, job) of each point of the axis."""
    if axis == "prefill":
        options = [
            (f"at most {n} new tokens", ServeOptions(device=device, trace=trace, speed=AT_ONCE, limit=requests, max_new_tokens=n))
            for n in NEW_TOKENS
        ]  # fmt: skip
    else:
        options = [(spec, ServeOptions(device=device, spec=spec, limit=requests)) for spec in SPECS]
    return [(value, prepare(option)) for value, option in options]


def measure_served(
    name: str, open_backend: Open, axis: str, value: str, job: Job, rounds: int, meter: Meter
) -> ServedResult:
    """Serve the job behind each fence, in turn, `rounds` times; the first round warms up and does not count."""
    backend = open_backend({})
    spec = job.spec
    runs: dict[str, list[Summary]] = {fence.value: [] for fence in FENCES}
    with Engine(
        job.options.engine(), job.model.config, job.model.weights, backend, spec.algorithm, spec.draft, job.options.block
    ) as engine:  # fmt: skip
        meter.phase(f"{name}: {axis} {value}: compiling", len(engine.wanted()))
        for _ in engine.warm_up():
            meter.step()
        meter.phase(f"{name}: {axis} {value}", (rounds + 1) * len(FENCES))
        for _ in range(rounds + 1):
            for fence in FENCES:
                runs[fence.value].append(engine.run(job.workload.requests(), fence=fence))
                meter.step()
    digests = {summary.tokens_sha256 for found in runs.values() for summary in found}
    if len(digests) > 1:
        raise WarfenceError(f"bench: {name}, {axis} {value}: tokens differ between fences: {sorted(digests)}")
    any_run = runs[FenceMode.FINE.value][0]
    rates = {name: Spread.of(s.generated_tokens / s.seconds for s in found[1:]) for name, found in runs.items()}
    fine = rates[FenceMode.FINE.value]
    return ServedResult(
        name, backend.device, axis, value, any_run.requests, any_run.generated_tokens,
        any_run.steps_by_mode.get("extend", 0) / max(any_run.steps, 1),
        rates,
        {name: Spread.of(s.host_us_per_step for s in found[1:]) for name, found in runs.items()},
        {name: fine.over(rate) for name, rate in rates.items() if rate is not fine},
    )  # fmt: skip
