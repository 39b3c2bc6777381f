"""Trace Event JSON: it keeps to the format, and carries what a timeline tells."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.show.timeline.conftest import Trace
from tests.show.timeline.test_timeline import EVERY
from tests.show.timeline.trace_format import problems
from warfence.show.timeline.trace_events import trace_events


@pytest.fixture(scope="module")
def document(trace: Trace) -> dict[str, Any]:
    return trace_events(trace("strict"))


@pytest.mark.parametrize(("name", "device"), EVERY)
def test_it_keeps_to_the_format(trace: Trace, name: str, device: str) -> None:
    assert problems(json.loads(json.dumps(trace_events(trace(name, device))))) == []


@pytest.mark.parametrize(
    ("phase", "changes", "said"),
    [
        ("X", {"dur": -1}, "X without its dur"),
        ("X", {"ts": "0"}, "no ts"),
        ("X", {"tid": "forward"}, "'tid' is no whole number"),
        ("X", {"cname": "red"}, "cname red"),
        ("f", {"bp": ""}, "binds to the next slice"),
        ("f", {"id": "another"}, "flow"),
        ("s", {"ts": -1.0}, "lies in no slice"),
        ("i", {"s": "x"}, "unknown scope"),
        ("M", {"args": {}}, "metadata without"),
        ("X", {"ph": "Q"}, "unknown phase 'Q'"),
    ],
)
def test_the_check_finds_what_is_wrong(
    document: dict[str, Any], phase: str, changes: dict[str, Any], said: str
) -> None:
    spoilt = copy.deepcopy(document)
    next(e for e in spoilt["traceEvents"] if e["ph"] == phase).update(changes)
    assert any(said in problem for problem in problems(spoilt))


def test_what_it_carries(trace: Trace, document: dict[str, Any]) -> None:
    timeline, events = trace("strict"), document["traceEvents"]
    threads = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    assert list(threads) == list(timeline.tracks)
    assert len([e for e in events if e["ph"] == "X"]) == len(timeline.slices)
    assert len([e for e in events if e["ph"] == "i" and e["name"] == "read boundary"]) == len(timeline.marks)
    reader = next(e for e in events if e["ph"] == "X" and e["name"] == "page_table")
    assert (reader["cat"], reader["args"]["reads"], reader["tid"]) == (
        "shared read",
        ["req_to_token"],
        threads["forward"],
    )
    write = next(e for e in events if e["ph"] == "X" and e["cat"] == "shared write")
    assert write["args"]["writes"]
    assert write["tid"] == threads["schedule"]
    fences = {e["id"] for e in events if e.get("cat") == "fence"}
    assert len(fences) == len([a for a in timeline.arrows if a.war])
    about = document["otherData"]["1"]
    assert about["unit"] == "steps"
    assert about["clock"].startswith("virtual")


def test_two_timelines_are_two_processes(trace: Trace) -> None:
    both = trace_events(trace("strict"), trace("strict"))
    assert problems(both) == []
    assert {e["pid"] for e in both["traceEvents"]} == {1, 2}
