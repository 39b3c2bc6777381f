"""The targets, and what documents of `warfence bench --out` say about them, as a Markdown table.

    python benchmarks/targets.py FILE.json ... > targets.md

A target is "met" by the median; the quartiles stand beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from warfence.bench.cases import Case
from warfence.bench.document import read_document
from warfence.bench.results import CaseResult
from warfence.bench.spread import Spread

Row = tuple[str, str, str, str, str]
FINE, FLAT = "in_graph", 0.05
SHORT_MS, LEAST_MS = (0.2, 0.6), 1.2  # "at 0.33 ms", "at least 1.3 ms": forwards are not cut to size


def rows(cases: Iterable[CaseResult]) -> Iterator[Row]:
    """A row for each target and each case that it speaks of."""
    found = list(cases)
    for case in found:
        yield from _of_case(case)
    yield from _table_rows(found)


def _of_case(case: CaseResult) -> Iterator[Row]:
    on = f"{case.backend}, {case.device}"
    what = f"{case.case.name}: forward {case.forward_ms.median:.2f} ms"
    fine = case.strategies.get(FINE)
    cuda, torch = case.device == "cuda", case.backend == "torch"
    short = SHORT_MS[0] <= case.forward_ms.median <= SHORT_MS[1]
    if fine is not None and cuda:
        most = 1.03 if short else 1.01
        most = most if torch else 1.05
        told = (short or case.forward_ms.median >= LEAST_MS) and not case.case.sync and (torch or not short)
        yield _row(on, f"step / ideal, {what}", fine.over_ideal, most if told else None)
        for name, least in (("coarse", 1.15), ("self", 1.8)):
            ratio = case.strategies[name].over_in_graph if name in case.strategies else None
            if ratio is not None:
                wanted = least if torch and short and not case.case.sync else None
                yield _row(on, f"{name} / fine, {what}", ratio, wanted, at_least=True)
    if cuda and torch and case.barrier_latency_us is not None:
        yield _row(on, f"barrier latency, us, {what}", case.barrier_latency_us, 10.0)
    if cuda and torch:
        for kind, most in (("in_graph", 2.5), ("recorded", 5.0)):
            if kind in case.host_costs_us:
                yield _row(on, f"publish + barrier, us, {kind}, {what}", case.host_costs_us[kind], most)
    if case.device == "cpu" and case.case.forward == "demo" and case.fence_share_of_step is not None:
        share = 100 * case.fence_share_of_step
        yield on, f"fence over off, % of a step, {what}", "<= 2", f"{share:.2f}", _met(share <= 2)
    if case.memory is not None and case.memory.growth_bytes_per_step is not None:
        growth, (early, late) = case.memory.growth_bytes_per_step, case.memory.resident_bytes
        flat = late is not None and early is not None and late <= 1.01 * early
        yield on, f"memory, bytes a step over {case.memory.steps[1]} steps, {what}", "flat", f"{growth:.0f}", _met(flat)


def _table_rows(cases: list[CaseResult]) -> Iterator[Row]:
    """The step at the most rows over the step at the fewest, all else alike."""
    groups: dict[tuple[str, str, Case], list[CaseResult]] = {}
    for case in cases:
        plain = replace(case.case, table_rows=0)
        if FINE in case.strategies:
            groups.setdefault((case.backend, case.device, plain), []).append(case)
    for (backend, device, plain), group in groups.items():
        if len({case.case.table_rows for case in group}) > 1:
            few, many = (pick(group, key=lambda c: c.case.table_rows) for pick in (min, max))
            ratio = many.strategies[FINE].step_ms.median / few.strategies[FINE].step_ms.median
            about = f"step at {many.case.table_rows} rows / at {few.case.table_rows}, {plain.forward}"
            yield f"{backend}, {device}", about, f"<= {1 + FLAT}", f"{ratio:.3f}", _met(ratio <= 1 + FLAT)


def _row(on: str, figure: str, seen: Spread, bound: float | None, *, at_least: bool = False) -> Row:
    holds: Callable[[float], bool] = lambda v: bound is not None and (v >= bound if at_least else v <= bound)  # noqa: E731
    told = f"{seen.median:.3f} ({seen.low:.3f} to {seen.high:.3f})"
    if bound is None:
        return on, figure, "-", told, "-"
    return on, figure, f"{'>=' if at_least else '<='} {bound}", told, _met(holds(seen.median))


def _met(holds: bool) -> str:
    return "met" if holds else "MISSED"


def main(paths: list[str]) -> int:
    if not paths:
        print(__doc__)
        return 2
    documents = [read_document(Path(path)) for path in paths]
    for made in documents:
        about = made.environment
        devices = ", ".join(device["name"] for device in about.devices) or f"{about.cpus} CPUs"
        versions = ", ".join(f"{name} {version}" for name, version in about.versions.items())
        print(f"- `{about.command}`: {devices}; {versions}; {about.date}")
    print("\n| on | figure | target | measured (quartiles) | |\n| --- | --- | --- | --- | --- |")
    for row in rows(case for made in documents for case in made.cases):
        print(f"| {' | '.join(row)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
