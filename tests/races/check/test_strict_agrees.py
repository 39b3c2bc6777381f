"""The verdict by happens-before against what really happened: the strict backend's log, under both adversaries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.races.check.launches import LATE, MAP, READ, THINK, Issued, Recording, T
from tests.strict_log import writes_before_earlier_reads
from warfence.parity.strict.backend import StrictBackend
from warfence.races.replay.judged import judge
from warfence.races.scenarios.library import catalogue
from warfence.races.scenarios.program import Scenario
from warfence.show.observe.player import RecordedPlayer

ADVERSARIES = ("war", "raw")
READ_TOO_EARLY = {"side-stream", "re-record"}  # a write that is yet to come, which the other adversary makes late
lanes = st.sampled_from(("S", "P"))
calls = st.one_of(
    st.tuples(st.just("launch"), st.sampled_from((0, 1, None))),
    st.tuples(st.just("write"), lanes, st.sampled_from((T, MAP))),
    st.tuples(st.just("wait"), lanes, st.sampled_from(("before", "marker", "after"))),
    st.tuples(st.just("wait_lane"), lanes, st.sampled_from(("F", "S", "P"))),
    st.tuples(st.just("result")),
)


def judged(adversary: str, play: Any) -> tuple[bool, bool]:
    """(the checker finds a race, a write really landed before a read of an earlier launch)."""
    backend = StrictBackend(adversary=adversary)
    report = Recording(backend).report(play)
    return "race" in report.kinds(), bool(writes_before_earlier_reads(backend.log))


def run(r: Recording, program: list[tuple[Any, ...]]) -> None:
    issued: Issued | None = None
    for name, *how in program:
        if name == "launch":
            issued = r.launch(r.forward(READ, LATE, THINK, marker=how[0]))
        elif name == "write":
            r.write(getattr(r, how[0]), how[1])
        elif name == "wait_lane":
            getattr(r, how[0]).wait_lane(getattr(r, how[1]))
        elif issued is not None and name == "result":
            issued.outputs.result()
        elif issued is not None and getattr(issued, how[1]) is not None:
            getattr(r, how[0]).wait(getattr(issued, how[1]))


@pytest.mark.parametrize("adversary", ADVERSARIES)
@settings(max_examples=25, deadline=None)
@given(st.lists(calls, max_size=14))
def test_what_happened_out_of_order_is_found_whatever_was_called(adversary: str, program: list[Any]) -> None:
    found, happened = judged(adversary, lambda r: run(r, program))
    assert found or not happened


@pytest.mark.parametrize("scenario", catalogue(), ids=lambda one: one.id)
def test_a_bad_program_happens_under_the_adversary_that_writes_early(scenario: Scenario) -> None:
    backend = StrictBackend(adversary="war")
    judged = judge(scenario, RecordedPlayer(lambda: backend))
    happened = bool(writes_before_earlier_reads(backend.log))
    assert not happened or judged.verdict == "bad"
    if judged.verdict == "bad" and scenario.id not in READ_TOO_EARLY:
        assert happened
