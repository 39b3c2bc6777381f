"""What people are told of a run: facts out of its report, each with what it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warfence.serve.jobs.run_report import forced_coarse

Fact = tuple[str, str, str]  # what, its value, and what that means


def facts_of(report: Mapping[str, Any]) -> list[Fact]:
    """All that people are told of a run, in order. What does not apply to it is left out."""
    compiled = report["compilations"]
    loop = "serial" if report["serial"] else f"overlapped, fence {report['fence']}"
    rows = [
        ("run", f"on {report['device']}, {loop}", f"attention {report['attention']}"),
        ("tokens", str(report["generated_tokens"]), f"generated for {report['requests']} requests"),
        ("sha256", f"{report['tokens_sha256'][:12]}…", "of all tokens; equal when the texts are"),
    ]
    if report["completed"]:
        rows += _what_happened(report)
    rows.append(
        ("compiled", f"{compiled['warm_up']} + {compiled['after']}", "programs in warm-up + afterwards (must be 0)")
    )
    return rows


def _what_happened(report: Mapping[str, Any]) -> list[Fact]:
    """Of a run to its end."""
    happened, spec = report["happened"], report["spec"]
    speculates = spec["block"] is not None
    decodes = "target_verify checks a block a request" if speculates else "decode makes one token a request"
    rows = [
        ("speed", f"{report['tokens_per_s']:.0f} tokens/s", "host time, compiling not counted"),
        ("steps", _counts(report["steps_by_mode"]), f"extend reads prompts, {decodes}"),
    ]
    if speculates:
        rows.append(("speculation", *_speculation(report)))
    rows += [
        ("barriers", _counts(report["barriers"]), _barriers(report)),
        ("policies", _counts(report["policies"]), "where each launch published that its table reads are done"),
        ("retractions", str(happened["retractions"]), "requests that gave their memory back and started again"),
        ("evictions", str(happened["evictions"]), "tokens that no sliding layer can see any more"),
        ("later chunks", str(happened["later_chunks"]), "parts of prompts too long for one launch"),
        ("rows recycled", str(happened["rows_recycled"]), "table rows given to a new request: what a race would hit"),
    ]
    if speculates:
        rows.append(("slots returned", str(happened["slots_returned"]), "of proposals that were not accepted"))
    if happened["not_overlapped"]:
        rows.append(
            ("not overlapped", f"{happened['not_overlapped']} steps", "issued only when the result before was known")
        )
    seconds = {mode: s for mode, s in report["device_s_by_mode"].items() if s is not None}
    if seconds:
        told = ", ".join(f"{s:.2f} s {mode}" for mode, s in seconds.items())
        rows.append(("device", told, "on the forward lane, by mode of the launch"))
    if (share := report["forward_occupancy"]) is not None:
        rows.append(("occupancy", f"{100 * share:.0f} %", "of the run's time the forward lane ran"))
    for name, key, what in (
        ("first token", "ttft_ms", "from a request's arrival; median, and how long 10 % and 1 % wait at least"),
        ("next token", "itl_ms", "from one token of a request to its next"),
    ):
        if (waits := report[key]) is not None:
            rows.append((name, f"{waits['p50']:.1f} ms, p90 {waits['p90']:.1f}, p99 {waits['p99']:.1f}", what))
    if (cost := report["host_us_per_step"]) is not None:
        waits = "and its waits at the fence" if report["barriers"]["host"] else "while the model runs"
        rows.append(("host", f"{cost:.0f} us a step", f"the scheduler's own work, {waits}"))
    return rows


def _speculation(report: Mapping[str, Any]) -> tuple[str, str]:
    """How much the proposals brought."""
    spec = report["spec"]
    mean, fallbacks = spec["tokens_per_verify"], spec["fallbacks"]
    brought = "nothing verified" if mean is None else f"{mean:.2f} tokens a verify"
    plainly = f"; {fallbacks} plain steps, for want of slots" if fallbacks else ""
    return (
        f"{spec['name']}, block {spec['block']}: {brought}",
        f"the chosen one included; {report['tokens_per_step']:.1f} tokens a step of all requests{plainly}",
    )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items() if n) or "none"


def _barriers(report: Mapping[str, Any]) -> str:
    if report["serial"]:
        return "nothing overlaps, so nothing is fenced"
    if report["fence"] == "off":
        return "no write waited for a read"
    if report["fence"] == "self":
        return "host: the host itself waited for the whole forward, the older way"
    if forced_coarse(report):
        return "coarse: waited for the whole forward, because WARFENCE_FORCE_COARSE_WAR_BARRIER=1"
    return "fine: writes waited for the last read only; coarse: for the whole forward"
