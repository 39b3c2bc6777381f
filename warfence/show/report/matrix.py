"""The parity matrix for a page: a row for each mode and attention, a square for each fence, and what is behind a square."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from warfence.core.errors import InputError
from warfence.core.forwards import FencePlan
from warfence.core.program import START, ForwardProgram, Stage
from warfence.parity.cells import COARSE, DONATION, FINE, Cell
from warfence.parity.overview import COLUMNS
from warfence.parity.probe import END, Release
from warfence.parity.report import BAD, CellEntry, reading, verdicts
from warfence.parity.rig import program_of
from warfence.parity.small import small_model
from warfence.serve.model.config import ModelConfig

FENCED = {
    FINE: "the schedule lane waits for the read-done ticket, where the policy publishes one",
    COARSE: "coarse is forced: the schedule lane waits for the whole forward, whatever the policy",
    DONATION: "there is no barrier: only a hold of the runtime's own can keep the write back",
}
AT, LATER, EARLY, NOTHING = "at", "later", "early", "nothing"  # where a write lands, seen from the read boundary


@dataclass(frozen=True, slots=True)
class Line:
    """What one backend shows in a square."""

    backend: str
    place: str
    text: str


@dataclass(frozen=True, slots=True)
class Position:
    """One stage, in the order of the forward, and what happens right behind it. stage: None before the first and at the end."""

    name: str
    stage: Stage | None
    boundary: bool
    marker: bool
    events: Sequence[str]


@dataclass(frozen=True, slots=True)
class Detail:
    """Cells that are alike in all that is shown: `cells` says which."""

    entry: CellEntry
    cells: str
    fenced: str
    rule: str
    reason: str
    verdict: str
    readings: dict[str, str]
    positions: Sequence[Position]


@dataclass(frozen=True, slots=True)
class Square:
    """One row under one fence. bad: a cell of it is not in order."""

    id: str
    name: str
    lines: Sequence[Line]
    details: Sequence[Detail]
    bad: bool

    @property
    def verdict(self) -> str:
        """In words; of several cells, what is wrong with any."""
        said = dict.fromkeys(detail.verdict for detail in self.details if detail.entry.status in BAD or not self.bad)
        return ", ".join(said)


@dataclass(frozen=True, slots=True)
class Row:
    """One mode and attention backend. A square is None where no cell of the run belongs there."""

    mode: str
    attention: str
    boundary: str
    squares: Sequence[Square | None]


def rows(entries: Sequence[CellEntry]) -> Iterator[Row]:
    """In the order of the cells. InputError for cells of another version, with stages that no program here has."""
    grouped: dict[tuple[str, str], list[CellEntry]] = {}
    for entry in entries:
        cell = entry.result.cell
        grouped.setdefault((cell.mode.name, cell.attention), []).append(entry)
    for number, ((mode, attention), group) in enumerate(grouped.items()):
        squares = []
        for at, column in enumerate(COLUMNS):
            mine = [entry for entry in group if column.shows(entry.result.cell)]
            name = f"{mode} / {attention} / {column.title}"
            squares.append(_square(f"cell-{number}-{at}", name, mine) if mine else None)
        yield Row(mode, attention, group[0].result.boundary, squares)


def _square(id: str, name: str, entries: Sequence[CellEntry]) -> Square:
    alike: dict[object, list[CellEntry]] = {}
    for entry in entries:
        r = entry.result
        key = (r.boundary, r.policy, r.expected, str(r.release), str(r.notes), entry.status, entry.reason)
        alike.setdefault(key, []).append(entry)
    details = [_detail(same) for same in alike.values()]
    backends = dict.fromkeys(name for entry in entries for name in entry.result.release)
    lines = [_line(name, [detail.entry for detail in details]) for name in backends]
    return Square(id, name, lines, details, any(entry.status in BAD for entry in entries))


def _line(backend: str, entries: Sequence[CellEntry]) -> Line:
    """The worst place of all these cells, and each reading once."""
    places: list[str] = []
    texts: dict[str, None] = {}
    for entry in entries:
        result, fenced = entry.result, entry.result.cell.fence != DONATION
        release = result.release.get(backend)
        places.append(_place(result.boundary, release, result.cell))
        failed = backend in result.failed
        texts["error" if failed else "" if release is None else reading(release, fenced)] = None
    worst = next(place for place in (EARLY, LATER, AT, NOTHING) if place in places)
    return Line(backend, worst, " / ".join(filter(None, texts)))


def _place(boundary: str, release: Release | None, cell: Cell) -> str:
    """Where the first of barrier and write is, seen from the boundary; without a barrier, the write."""
    if release is None:
        return NOTHING
    order = _order(cell)
    at = min(order.index(place) for place in (release.landed, release.opened if cell.fence != DONATION else END))
    last_read = order.index(boundary) if boundary != "none" else 0
    if at < last_read:
        return EARLY
    return AT if release.landed == boundary else LATER


def _detail(entries: Sequence[CellEntry]) -> Detail:
    entry = entries[0]
    result, cell = entry.result, entry.result.cell
    for place in (result.boundary, *(p for r in result.release.values() if r for p in (r.opened, r.landed))):
        if place != "none" and place not in _order(cell):
            raise InputError(
                f"cell '{cell.name}' names the stage '{place}', and the program of this version of warfence has none; "
                "measure again"
            )
    _, fence = _planned(cell)
    marker = fence.marker_stage(cell.mode.mode)
    decision = fence.decide(cell.mode.mode, marker is not None)
    verdict = f"skipped: {entry.reason}" if entry.status == "skipped" else verdicts(result)
    if entry.status in ("xfailed", "xpassed"):
        verdict += f" ({entry.status}: {entry.reason})"
    if entry.status == "not applicable":
        verdict = "not applicable: it cannot be measured on any backend"
    readings = {name: _told(release, cell.fence != DONATION) for name, release in result.release.items()}
    return Detail(
        entry, _which(entries), FENCED[cell.fence], decision.rule, decision.reason, verdict, readings,
        list(_positions(entry, marker)),
    )  # fmt: skip


def _told(release: Release | None, fenced: bool) -> str:
    if release is None:
        return "not measured"
    if not fenced:
        return f"the write lands behind {release.landed}"
    if release.opened == release.landed:
        return f"the barrier opens and the write lands behind {release.landed}"
    return f"the barrier opens behind {release.opened}, the write lands behind {release.landed}"


def _which(entries: Sequence[CellEntry]) -> str:
    batches = dict.fromkeys(str(entry.result.cell.batch) for entry in entries)
    markers = dict.fromkeys("with marker" if entry.result.cell.marker else "without marker" for entry in entries)
    return f"batch {' and '.join(batches)}, {' and '.join(markers)}"


def _positions(entry: CellEntry, marker: str | None) -> Iterator[Position]:
    result, fenced = entry.result, entry.result.cell.fence != DONATION
    stages = {stage.name: stage for stage in _planned(result.cell)[0].stages}
    for name in _order(result.cell):
        events = []
        for backend, release in result.release.items():
            opens, lands = release and release.opened == name, release and release.landed == name
            if fenced and opens:
                events.append(f"{backend}: the barrier opens{', the write lands' if lands else ''}")
            elif lands:
                events.append(f"{backend}: the write lands")
        if name in stages or events:
            yield Position(name, stages.get(name), name == result.boundary, name == marker, events)


def _order(cell: Cell) -> list[str]:
    return [START, *(stage.name for stage in _planned(cell)[0].stages), END]


@cache
def _planned(cell: Cell) -> tuple[ForwardProgram, FencePlan]:
    return program_of(cell, _config())


@cache
def _config() -> ModelConfig:
    """Of the model that the suite runs on."""
    return small_model().config
