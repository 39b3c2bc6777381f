"""Runs the whole parity suite on some backends and reports: cells on all of them side by side, then laws, then mutants.

No pytest inside, and nothing is printed: `warfence parity` watches, prints and writes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

from warfence.core.backend import Capabilities
from warfence.core.errors import InputError
from warfence.host.meter import Meter
from warfence.parity.cells import Cell, matrix
from warfence.parity.honesty import what_failed
from warfence.parity.laws import LAWS, Law
from warfence.parity.matrix import CellResult, MakeBackend, Rig, blank, run_cell
from warfence.parity.mutants import MUTANTS, run_mutants
from warfence.parity.report import BAD, CellEntry, LawEntry, MutantEntry, Report, status_of
from warfence.parity.scorecard import LawResult, iterate_laws
from warfence.parity.selection import Selection
from warfence.parity.small import SmallModel, small_model


@dataclass(frozen=True, slots=True)
class Contender:
    """A backend of the run. `unguarded` makes one whose tables only the fence protects, for the mutants. options: those that it
    was asked for with."""

    target: str
    make: MakeBackend
    unguarded: MakeBackend
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """What is to be run, and on which backends."""

    contenders: Mapping[str, Contender]
    cells: Sequence[Cell]
    selection: Selection
    laws: bool = True
    mutants: bool = False

    def warnings(self) -> list[str]:
        """What the skips and xfails files name that is neither a cell, chosen for this run or not, nor a law."""
        return self.selection.unmatched([*(cell.name for cell in matrix()), *(law.id for law in LAWS)])


def run_suite(plan: SuiteOptions, meter: Meter) -> Report:
    """Run all of it. InputError when a backend refuses to start with what it was given."""
    began, small = time.perf_counter(), small_model()
    bench = _Bench(plan, small, meter)
    report = Report(bench.about, warnings=plan.warnings(), date=time.strftime("%Y-%m-%dT%H:%M:%S%z"))
    try:
        report.cells += _cells(plan, bench, meter)
    finally:
        bench.close()
    for name, contender in plan.contenders.items():
        if plan.laws:
            meter.phase(f"laws on {name}", len(LAWS))
            report.laws += _laws(plan, name, contender.make, small, meter)
        if plan.mutants:
            meter.phase(f"mutants on {name}", len(MUTANTS))
            report.mutants += _mutants(name, contender.unguarded, meter)
    report.seconds = time.perf_counter() - began
    return report


class _Bench:
    """The rigs of the run. One that does not start fails every cell, with what it said."""

    def __init__(self, plan: SuiteOptions, small: SmallModel, meter: Meter) -> None:
        self.small = small
        self.rigs: dict[str, Rig] = {}
        self.dead: dict[str, str] = {}
        self.about: dict[str, dict[str, object]] = {}
        for name, contender in plan.contenders.items():
            meter.phase(f"starting {name}", 1)
            self.about[name] = {"target": contender.target, "device": None, "capabilities": {}, "reasons": {}}
            try:
                backend = contender.make()
                self.about[name] |= {"device": backend.device} | _said(backend.capabilities)
                self.rigs[name] = Rig(backend, small, contender.make)
            except InputError:
                self.close()
                raise
            except Exception as error:  # of a backend under test
                self.dead[name] = f"it does not start: {what_failed(error)}"
            meter.step(name in self.dead)

    def probe(self, cell: Cell) -> CellResult:
        result = run_cell(self.rigs, cell) if self.rigs else blank(cell, self.small.config)
        for name, why in self.dead.items():
            result.fail(name, why)
        return result

    def close(self) -> None:
        for rig in self.rigs.values():
            with suppress(Exception):  # a backend that failed was reported already
                rig.backend.close()


def _cells(plan: SuiteOptions, bench: _Bench, meter: Meter) -> Iterator[CellEntry]:
    wanted = [cell for cell in plan.cells if plan.selection.skip(cell.name) is None]
    for name, rig in bench.rigs.items():
        meter.phase(f"compiling for {name}", len(wanted))
        rig.prepare(wanted, lambda: meter.step(False))
    meter.phase("cells", len(plan.cells))
    for cell in plan.cells:
        why = plan.selection.skip(cell.name)
        if why is not None:
            entry = CellEntry(blank(cell, bench.small.config), "skipped", why)
        else:
            began, xfail = time.perf_counter(), plan.selection.xfail(cell.name)
            result = bench.probe(cell)
            status = status_of(result.ok, xfail, applies=any(result.release.values()))
            entry = CellEntry(result, status, xfail or "", time.perf_counter() - began)
        meter.step(entry.status in BAD)
        yield entry


def _laws(plan: SuiteOptions, name: str, make: MakeBackend, small: SmallModel, meter: Meter) -> Iterator[LawEntry]:
    skips = {law.id: plan.selection.skip(law.id) for law in LAWS}
    wanted = tuple(law for law in LAWS if skips[law.id] is None)
    results = _results(make, wanted, small)
    for law in LAWS:
        began, why = time.perf_counter(), skips[law.id]
        if why is not None:
            entry = LawEntry(name, law.id, law.sentence, "not run", "", "skipped", why)
        else:
            result, xfail = next(results), plan.selection.xfail(law.id)
            status = status_of(result.outcome != "broken", xfail, applies=result.outcome == "held")
            entry = LawEntry(name, law.id, law.sentence, result.outcome, result.message, status, xfail or "")
        meter.step(entry.status in BAD)
        yield replace(entry, seconds=time.perf_counter() - began)


def _results(make: MakeBackend, laws: tuple[Law, ...], small: SmallModel) -> Iterator[LawResult]:
    """One result a law, also where no backend to try it on can be made."""
    while laws:
        try:
            for result in iterate_laws(make, laws, small):
                yield result
                laws = laws[1:]
        except Exception as error:  # of a backend under test
            yield LawResult(laws[0].id, laws[0].sentence, "broken", what_failed(error))
            laws = laws[1:]


def _mutants(name: str, make: MakeBackend, meter: Meter) -> Iterator[MutantEntry]:
    for r in run_mutants(make):
        entry = MutantEntry(name, r.id, r.law, r.caught, r.caught_by, r.right_law, r.message, r.right)
        meter.step(entry.status in BAD)
        yield entry


def _said(capabilities: Capabilities) -> dict[str, object]:
    said = asdict(replace(capabilities, reasons=dict(capabilities.reasons), ways=dict(capabilities.ways)))
    return {"reasons": said.pop("reasons"), "ways": said.pop("ways"), "capabilities": said}
