"""What a check found, line by line, for people."""

from __future__ import annotations

from collections.abc import Iterator

from warfence.races.check.findings import Findings


def told(report: Findings, log: str) -> Iterator[str]:
    """Every finding, then the verdict with what was missed, then what no check sees. log: what the log is called."""
    for number, finding in enumerate(report.findings, 1):
        times = f" ({finding.count} times, the first one here)" if finding.count > 1 else ""
        yield f"{number}. {finding.kind}{times}: {finding.what}"
        yield f"   edge: {finding.missing}"
        yield f"   earliest: {finding.earliest}"
        if finding.operations:
            yield f"   cost: {finding.operations} operations waited for in vain, all times together"
        yield f"   event {' and '.join(map(str, finding.lines))} of the log"
        yield from (f"   at {where}" for where in finding.where if where)
        yield ""
    found = f"{len(report.findings)} findings" if report.findings else report.verdict
    yield f"{log}: {report.events} events on {len(report.lanes)} lanes ({', '.join(report.lanes)}): {found}"
    yield from (f"incomplete: {missed}" for missed in report.missed)
    yield "What this check cannot see:"
    yield from (f"- {limit}" for limit in report.limits)
