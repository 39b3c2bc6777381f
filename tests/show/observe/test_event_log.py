"""Recorded backends: their logs tell what the checker needs, the same on every backend."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.races.check.launches import LATE, MAP, READ, SHAPE, THINK, Recording, T
from warfence import backends
from warfence.core.backend import Backend
from warfence.core.errors import FenceError
from warfence.core.modes import FenceMode
from warfence.parity.laws import LAWS
from warfence.parity.mutants import MUTANTS
from warfence.parity.mutants.base import Mutant
from warfence.parity.scorecard import check_backend
from warfence.parity.small import SmallModel, make_engine, serve, small_model
from warfence.parity.strict.backend import StrictBackend
from warfence.races.check.events import Event
from warfence.races.check.findings import Finding, Findings, check
from warfence.races.check.log_file import Log
from warfence.races.check.runs import runs
from warfence.races.replay.judged import judge_all, recall_and_precision
from warfence.races.scenarios.library import catalogue
from warfence.show.observe import EventLog, Observed, unseen
from warfence.show.observe.player import RecordedPlayer


def open_backend(name: str, device: str = "cpu") -> Backend:
    if name == "strict":
        return StrictBackend(device)
    pytest.importorskip(name)
    return backends.load(name)(device=device)


EVERY = (
    ("strict", "cpu"),
    pytest.param("torch", "cpu", marks=pytest.mark.slow),
    pytest.param("jax", "cpu", marks=pytest.mark.slow),
    pytest.param("torch", "cuda", marks=[pytest.mark.slow, pytest.mark.gpu]),
    pytest.param("jax", "cuda", marks=[pytest.mark.slow, pytest.mark.gpu]),
)


@pytest.fixture(scope="module")
def small() -> SmallModel:
    return small_model()


@pytest.fixture
def recording() -> Iterator[Recording]:
    made = Recording(StrictBackend())
    yield made
    made.fixture.close()


def only(report: Findings, kind: str) -> Finding:
    (finding,) = (one for one in report.findings if one.kind == kind)
    return finding


@pytest.mark.parametrize(("name", "device"), EVERY)
def test_every_program_of_the_catalogue_gets_its_verdict_from_an_execution(name: str, device: str) -> None:
    player = RecordedPlayer(lambda: open_backend(name, device))
    try:
        results = judge_all(catalogue(), player)
    finally:
        player.close()
    assert [one for one in results if not one.right] == []
    assert recall_and_precision(results) == (1.0, 1.0)
    assert sum(1 for one in results if one.verdict) > 80


Watched = dict[str, tuple[Findings, list[Event]]]


def watched(backend: Backend, small: SmallModel) -> Watched:
    """The small workload behind each fence, one engine: what the check says, and the log without its places."""
    events: list[Event] = []
    found = {}
    with make_engine(small, Observed(backend, EventLog(events.append)), rows=2, extend_rows=1, slots=60) as engine:
        for fence in (FenceMode.FINE, FenceMode.COARSE, FenceMode.OFF):
            events.clear()
            requests, _ = serve(engine, fence=fence)
            if fence is not FenceMode.OFF:
                assert [request.output for request in requests] == small.expected[False]
            report = check(Log(tuple(events), unseen(backend)))
            found[fence.value] = report, [event._replace(where="", event="", launch=0) for event in events]
    return found


@pytest.fixture(scope="module")
def strict(small: SmallModel) -> Watched:
    return watched(StrictBackend(), small)


@pytest.mark.slow
def test_a_served_run_is_clean_behind_a_fence_and_races_without_one(strict: Watched) -> None:
    fine, coarse, off = (strict[name][0] for name in ("fine", "coarse", "off"))
    assert "race" not in fine.kinds() | coarse.kinds()
    assert only(coarse, "over-fencing").operations > 2 * only(fine, "over-fencing").operations > 0  # prefill is coarse
    assert off.kinds() == {"race"}
    told = {finding.resource: finding.what for finding in off.findings}
    assert set(told) == {"req_to_token", "full_to_swa"}
    assert "'swa_translate' of launch" in told["req_to_token"]
    assert "'write req_to_token' on lane schedule" in told["req_to_token"]
    assert "core/fence.py" in only(coarse, "over-fencing").where[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch", "jax"])
def test_the_log_of_a_served_run_is_the_same_on_every_backend(strict: Watched, small: SmallModel, name: str) -> None:
    backend = watched(open_backend(name), small)
    for fence in ("fine", "coarse"):
        assert backend[fence][1] == strict[fence][1]
    assert backend["off"][0].kinds() == {"race"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "spec", "attention"),
    [
        ("marker-one-stage-early", "none", "captured"),
        ("reads-again", "none", "snapshot"),
        ("no-read-after-write", "none", "captured"),
        ("plan-lane-overtakes", "eagle", "captured"),
        ("", "eagle", "captured"),
    ],
)
def test_a_planted_mistake_of_order_is_found_in_a_served_run(
    small: SmallModel, name: str, spec: str, attention: str
) -> None:
    (mutant,) = (one for one in (*MUTANTS, Mutant("", "", "")) if one.id == name)
    events: list[Event] = []
    backend = Observed(mutant.wrap(StrictBackend()), EventLog(events.append))
    with mutant.patch(), make_engine(small, backend, spec, attention=attention, rows=2, extend_rows=1) as engine:
        serve(engine)
    assert ("race" in check(Log(tuple(events))).kinds()) is bool(name)


@pytest.mark.slow
def test_a_recorded_backend_holds_the_laws_that_its_calls_can_break() -> None:
    laws = tuple(law for law in LAWS if law.id.split("-")[0] in ("4", "5", "6", "12", "14"))
    card = check_backend(lambda: Observed(StrictBackend(), EventLog([].append)), laws)
    assert [result.outcome for result in card.results] == ["held"] * 5, card.results


def test_a_marker_one_stage_early_is_a_race_inside_the_replay_named_with_its_stage(recording: Recording) -> None:
    def early(r: Recording) -> None:
        issued = r.launch(r.forward(READ, LATE, THINK, marker=0))
        assert issued.marker is not None
        r.S.wait(issued.marker)
        r.write(r.S, MAP)

    race = only(recording.report(early), "race")
    assert "read of map[0:12] by 'read.1' of launch 1 on lane forward" in race.what
    assert "write of map[4:8] by 'write map' on lane schedule" in race.what
    assert "lane schedule does not wait for lane forward behind 'read.1' of launch 1" in race.missing
    assert "it is behind an operation 1 earlier only" in race.missing
    assert all("in launch" in race.where[0] and "in write" in place for place in race.where[1:])


def test_a_refused_ticket_is_told_and_orders_nothing(recording: Recording) -> None:
    def refused(r: Recording) -> None:
        forward = r.forward(READ, THINK, marker=0)
        first, _ = r.launch(forward), r.launch(forward)
        assert first.marker is not None
        with pytest.raises(FenceError, match="is stale"):
            r.S.wait(first.marker)
        r.write(r.S)

    report = recording.report(refused)
    assert report.kinds() == {"stale-ticket", "race"}
    assert "for launch 1, but the event holds the record of launch 2, generation 2" in only(report, "stale-ticket").what


@pytest.mark.parametrize("waits", [True, False])
def test_a_ticket_by_value_may_be_waited_for_before_its_launch(waits: bool) -> None:
    recording = Recording(StrictBackend(ticket="value"))

    def ahead(r: Recording) -> None:
        forward = r.forward(READ, THINK, marker=0)
        assert forward.marker is not None
        for launch in (1, 2):
            r.F.wait_lane(r.S)
            r.F.wait_lane(r.P)
            ticket = forward.marker.ticket(launch)
            if waits:
                r.S.wait(ticket)
                r.P.wait(ticket)
            r.write(r.S)
            r.write(r.P, row=2)
            assert r.launch(forward).number == launch
            r.F.synchronize()
            assert ticket.source.done()

    report = recording.report(ahead)
    assert report.kinds() - {"over-fencing"} == (set() if waits else {"race"})
    recording.fixture.close()


def test_lanes_and_tables_of_the_inner_backend_are_foreign(recording: Recording) -> None:
    other = Recording(StrictBackend())
    ticket = other.launch(other.forward(READ)).after
    with pytest.raises(FenceError, match="foreign"):
        recording.S.wait(ticket)
    with pytest.raises(FenceError, match="another backend"):
        recording.S.wait_lane(other.S)


def test_a_snapshot_of_a_table_is_ordered_behind_its_writes(recording: Recording) -> None:
    def looks(r: Recording) -> None:
        r.write(r.P)
        assert r.fixture.tables.snapshot_to_host(T)[1].tolist() == [1] * SHAPE[1]

    assert recording.report(looks).findings == ()


def ints(*cells: int) -> np.ndarray:
    return np.array(cells, np.int32)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (ints(), []),
        (ints(5), [(5, 6)]),
        (ints(3, 1, 2), [(1, 4)]),
        (ints(9, 1, 2, 20), [(1, 3), (9, 10), (20, 21)]),
        (ints(0, 2, 10, 30), [(0, 3), (10, 11), (30, 31)]),  # the smallest gap is closed
    ],
)
def test_cells_are_a_few_sorted_intervals(cells: np.ndarray, expected: list[tuple[int, int]]) -> None:
    assert runs(cells, most=3) == expected


def test_a_write_of_many_runs_covers_all_of_its_cells() -> None:
    cells = np.random.default_rng(1).permutation(4000)[:300].astype(np.int32)
    found = runs(cells)
    assert len(found) == 8
    assert all(any(begin <= cell < end for begin, end in found) for cell in cells)


@pytest.mark.parametrize("guards", [True, False])
def test_the_log_says_where_the_runtime_guards_writes_itself(guards: bool) -> None:
    class Guarding(StrictBackend):
        def __init__(self) -> None:
            super().__init__()
            object.__setattr__(self.capabilities, "guards_writes", guards)

    assert any("guards table writes itself" in sentence for sentence in unseen(Guarding())) is guards
