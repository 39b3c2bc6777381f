"""What is particular to JAX: times that are seen late are brought into order, and the machine is left as it was."""

from __future__ import annotations

import sys
import threading

import pytest

pytest.importorskip("jax")

from tests.show.timeline.conftest import Trace
from warfence.core.backend import FORWARD
from warfence_jax.backend import JaxBackend
from warfence_jax.tools.timing import Token, agree


def seen(time: float) -> Token:
    token = Token(None)
    token.seen = time
    return token


def test_what_was_seen_after_the_next_of_its_lane_was_over_by_then() -> None:
    shared = seen(9.0)
    forward = [[seen(1.0)], [seen(7.0)], [shared], [seen(4.0)]]
    schedule = [[seen(6.0)], [shared], [seen(8.0)]]
    agree([schedule, forward])
    assert [points[0].seen for points in forward] == [1.0, 4.0, 4.0, 4.0]
    assert [points[0].seen for points in schedule] == [
        4.0,
        4.0,
        8.0,
    ]  # what the other lane knows of `shared` counts here


def test_a_point_of_several_tokens_is_there_with_its_last_one() -> None:
    points = [[seen(2.0), seen(5.0)], [seen(3.0)]]
    agree([points])
    assert [[token.seen for token in tokens] for tokens in points] == [[2.0, 3.0], [3.0]]


@pytest.mark.slow
def test_a_slice_is_an_executable_and_says_so(trace: Trace) -> None:
    timeline = trace("jax")
    decoding = [s.stages for s in timeline.slices if s.kind == "stage" and timeline.mode(s.launch) == "decode"]
    assert ("page_table", "swa_translate") in decoding
    assert timeline.about["slice"].startswith("one executable, with all of its stages")


def test_the_interpreter_and_the_threads_are_as_before() -> None:
    before = sys.getswitchinterval()
    backend = JaxBackend()
    timer = backend.time_stages()
    timer.start()
    stamp = timer.after(backend.lane(FORWARD))
    assert sys.getswitchinterval() < before
    backend.lane(FORWARD).synchronize()
    assert 0 < (stamp() or 0) < timer.now()
    backend.close()
    assert sys.getswitchinterval() == before
    assert not [t for t in threading.enumerate() if t.name.startswith("warfence-times")]
