"""Playing the catalogue for the checker: what counts as right, what cannot be played, and what calls of the interface can say."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from warfence.core.errors import FenceError
from warfence.parity.strict.backend import StrictBackend
from warfence.races.check.findings import Findings, check
from warfence.races.check.log_file import Log
from warfence.races.replay import interface
from warfence.races.replay.interface import layout_of
from warfence.races.replay.judged import (
    AWAITS,
    ENDLESS,
    STALE,
    THREADS,
    judge,
    judge_all,
    played_of,
    recall_and_precision,
)
from warfence.races.scenarios.explore import explore
from warfence.races.scenarios.library import catalogue, find
from warfence.races.scenarios.log import log
from warfence.races.scenarios.operations import Memories
from warfence.races.scenarios.parse import parse
from warfence.races.scenarios.steps import Trace
from warfence.show.observe.player import RecordedPlayer


class Told:
    """A player that executes nothing and tells the calls of the trace, without those waits that it loses."""

    def __init__(self, loses: Iterable[str] = (), refuses: str = "") -> None:
        self._loses, self._refuses = set(loses), refuses

    def lacks(self, trace: Trace, memories: Memories) -> str:
        return "handles" if memories.arrays else ""

    def play(self, trace: Trace, memories: Memories) -> Findings:
        if self._refuses:
            raise FenceError(self._refuses)
        return check(Log(tuple(event for event in log(trace).events if event.kind not in self._loses)))


def test_a_player_that_tells_all_calls_is_right_about_every_program() -> None:
    results = judge_all([one for one in catalogue() if one.expect != "error"], Told())
    assert [one for one in results if not one.right] == []
    assert recall_and_precision(results) == (1.0, 1.0)
    assert {one.lacks for one in results if one.lacks} == {"handles", THREADS, AWAITS, ENDLESS, STALE}


def test_a_player_that_loses_calls_is_found_out() -> None:
    scenarios = [one for one in catalogue() if one.expect != "error"]
    waits, writes = (
        judge_all(scenarios, Told(("wait", "wait_lane", "host_sync"))),
        judge_all(scenarios, Told(("write",))),
    )
    assert {"in-graph", "coarse", "host-staging-fenced"} <= {one.id for one in waits if not one.right}
    assert {"no-fence", "host-staging"} <= {one.id for one in writes if not one.right}
    recall, precision = recall_and_precision(waits)
    assert recall == 1.0 > precision
    assert recall_and_precision(writes)[0] < 0.2


def test_a_refusal_is_right_for_a_wrong_program_only() -> None:
    for id, right in (("no-fence", True), ("two-publishers", True), ("in-graph", False), ("post-early", False)):
        judged = judge(find(id), Told(refuses="not here"))
        assert (judged.verdict, judged.refused, judged.right) == ("error", "not here", right)


def test_a_right_program_with_choices_is_played_in_each_order_of_its_calls() -> None:
    assert len(played_of(explore(find("conditional-publication-fixed")))) == 2
    assert len(played_of(explore(find("conditional-publication")))) == 1


@pytest.mark.parametrize(
    ("body", "lacks"),
    [
        ("forward writes t[3]\nschedule writes t[3]", interface.ONE_READER),
        ("forward reads t[3]\nschedule reads t[3]", interface.ONE_READER),
        ("forward reads t[0:4]\nschedule writes t[2:6]\nschedule writes t[5:7]", interface.PARTS),
        ("forward reads t\na writes t\nb writes t\nc writes t", interface.FEW_LANES),
        ("launch 1 on forward {\n    records E\n    reads t\n}\nschedule writes t", interface.ONE_MARKER),
        ("host writes p\nlaunch 1 on forward {\n    reads p\n    records E\n}", interface.BATCH),
        ("host writes p\nforward reads p\nforward writes p", interface.RESULTS),
        ("host writes p\nschedule reads p, writes t\nforward reads t\nhost writes p", interface.VALUES),
        ("schedule allocates x[4]\nschedule writes x\nforward reads x", interface.BLOCKS),
        ("launch 1 on forward {\n    reads h\n}\nschedule donates h", interface.DONATES),
    ],
)
def test_what_the_interface_cannot_say_has_its_reason(body: str, lacks: str) -> None:
    head = "scenario s\ntitle T\ngroup bypass\nsource S\nexpect ok\n"
    declared = "lanes forward, schedule, a, b, c\ntable t[8]\npinned p[8]\narray h[8]\nevent E\n"
    outcome = explore(parse(f"{head}\n{declared}\n{body}\n"))
    (played,) = played_of(outcome)[:1]
    assert layout_of(*played).lacks == lacks


def test_parts_beside_each_other_are_tables_of_their_own() -> None:
    (played,) = played_of(explore(find("view-beside")))
    made = layout_of(*played)
    assert (made.lacks, list(made.tables)) == ("", [("base", 0, 8), ("base", 8, 16)])
    assert made.lanes == {"forward": "forward", "schedule": "schedule"}


def test_after_a_refusal_the_next_program_is_played_on_a_fresh_backend() -> None:
    made: list[StrictBackend] = []

    def make() -> StrictBackend:
        made.append(StrictBackend())
        return made[-1]

    results = judge_all([find("host-staging"), find("in-graph"), find("no-fence")], RecordedPlayer(make))
    assert [one.verdict for one in results] == ["error", "ok", "bad"]
    assert "the batch was changed after it was packed" in results[0].refused
    assert len(made) == 2
