"""A run as one JSON document: what was asked for, what happened, how fast, and on what."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from math import prod
from typing import Any

from warfence import __version__, backends
from warfence.core.backend import ArraySpec
from warfence.core.modes import FenceMode, ForwardMode, WarReadDonePolicy
from warfence.serve.engine import Summary, tokens_sha256
from warfence.serve.forced_order import Hold
from warfence.serve.jobs.job import Job
from warfence.serve.jobs.session import Outcome
from warfence.serve.model.program import state_specs, table_specs
from warfence.serve.planner import Limits


def run_report(job: Job, outcome: Outcome) -> dict[str, Any]:
    """The document. What only a run to its end can tell is null where the runtime refused to go on.

    Times are host time: `seconds` of the whole run, `host_us_per_step` the scheduler's own microseconds a step, with its
    waits at a self-fence; `ttft_ms` and `itl_ms` (p50, p90, p99) what a user waits for a request's first token and for each
    next one. Only `device_s_by_mode` is time on the forward lane, of the launches of each mode, and `forward_occupancy` its
    share of the run; null where the backend cannot tell. All of these are null where an order was forced: there all stand
    at gates. `pools` are bytes as configured. `runtime` is what the backend says of itself.
    """
    config, summary = outcome.config, outcome.summary
    generated = sum(len(request.output) for request in outcome.requests)
    return {
        "backend": job.options.backend,
        "device": outcome.device,
        "model": {"name": job.model.config.name, "sha256": job.model.sha256},
        "fence": config.fence.value,
        "attention": config.attention,
        "serial": config.serial,
        "spec": spec_report(job, outcome),
        "requests": len(outcome.requests),
        "generated_tokens": generated,
        "tokens_sha256": tokens_sha256(outcome.requests),
        "completed": summary is not None,
        "steps": summary.steps if summary else None,
        "steps_by_mode": dict(summary.steps_by_mode) if summary else None,
        "tokens_per_step": generated / summary.steps if summary and summary.steps else None,
        "seconds": summary.seconds if summary else None,
        "tokens_per_s": generated / summary.seconds if summary and summary.seconds else None,
        "host_us_per_step": summary.host_us_per_step if summary and config.forced_order is None else None,
        "ttft_ms": _waited(summary, config.forced_order, "ttft_ms"),
        "itl_ms": _waited(summary, config.forced_order, "itl_ms"),
        "forward_occupancy": summary.occupancy if summary and config.forced_order is None else None,
        "device_s_by_mode": _device_seconds(job, summary, config.forced_order) if summary else None,
        "barriers": dict(summary.barriers) if summary else None,
        "policies": {p.value: summary.policies.get(p.value, 0) for p in WarReadDonePolicy} if summary else None,
        "happened": dict(summary.happened) if summary else None,
        "compilations": {"warm_up": outcome.compiled_in_warm_up, "after": outcome.compiled_after},
        "pools": pool_bytes(job),
        "limits": _limits(job.limits),
        "runtime": dict(outcome.runtime),
        "notes": list(job.workload.notes),
        "versions": versions(),
    }


def spec_report(job: Job, outcome: Outcome) -> dict[str, Any]:
    """The algorithm, its block (null where nothing speculates), and what its verifies brought.

    verify_rows: rows of verifies that counted. accepted_tokens: what they brought, the chosen token included, so
    `tokens_per_verify` is the mean accepted length; null where nothing was verified. fallbacks: steps that decoded plainly
    because there were no slots for a block.
    """
    counts = outcome.summary.spec if outcome.summary else None
    rows, tokens = (counts["rows"], counts["tokens"]) if counts else (None, None)
    return {
        "name": job.spec.algorithm.name,
        "block": job.spec.drafting.block if job.spec.drafting is not None else None,
        "verify_rows": rows,
        "accepted_tokens": tokens,
        "tokens_per_verify": tokens / rows if tokens and rows else None,
        "fallbacks": counts["fallbacks"] if counts else None,
    }


def _waited(summary: Summary | None, forced: Hold | None, name: str) -> dict[str, float] | None:
    waits = getattr(summary.latency, name) if summary and forced is None else None
    return None if waits is None else asdict(waits)


def _device_seconds(job: Job, summary: Summary, forced: Hold | None) -> dict[str, float | None]:
    """For each mode that was launched. A step's mode may bring a second launch: a draft's."""
    launched = {mode for step in summary.steps_by_mode for _, mode in job.spec.algorithm.phases(ForwardMode(step))}
    told = summary.device_s_by_mode if forced is None else {}
    return {mode.value: told.get(mode.value) for mode in ForwardMode if mode in launched}


def forced_coarse(report: Mapping[str, Any]) -> bool:
    """Whether a fine fence was asked for and the environment made every barrier coarse."""
    barriers = report["barriers"] or {}
    return report["fence"] == FenceMode.FINE.value and not barriers.get("fine") and bool(barriers.get("coarse"))


def pool_bytes(job: Job) -> dict[str, int]:
    """Bytes of the shared tables, of the forward-private state and of the weights, as configured."""
    config, lim, drafting = job.model.config, job.limits, job.spec.drafting
    weights = {**job.model.weights, **(drafting.weights if drafting is not None else {})}
    state = state_specs(config, lim.rows, lim.slots, lim.swa_slots, drafting, max(lim.chunk, lim.block))
    return {
        "tables": _size(table_specs(config, lim.context, lim.rows, lim.slots)),
        "state": _size(state),
        "params": sum(array.nbytes for array in weights.values()),
    }


def _limits(limits: Limits) -> dict[str, int | None]:
    """Sizes that requests can use: without the reserved index 0 of each pool."""
    return {
        "context": limits.context,
        "rows": limits.rows - 1,
        "slots": limits.slots - 1,
        "swa_slots": limits.swa_slots - 1,
        "chunk": limits.chunk,
        "window": limits.window,
    }


def versions() -> dict[str, str]:
    """Versions of what took part in this process: warfence, Python, and each framework that was imported."""
    python = ".".join(str(number) for number in sys.version_info[:3])
    found = {"numpy": backends.version_of("numpy")}
    for one in backends.available().values():
        found |= backends.versions(one)
    return {"warfence": __version__, "python": python} | {name: v for name, v in found.items() if name in sys.modules}


def _size(specs: Mapping[str, ArraySpec]) -> int:
    return sum(4 * prod(spec.shape) for spec in specs.values())
