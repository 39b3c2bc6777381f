"""What lanes are understood to say."""

from __future__ import annotations

import pytest

from warfence.races.scenarios.explore import explore
from warfence.races.scenarios.parse import parse
from warfence.races.sweep.lanes import lane_judges

HEAD = """scenario one
title    One
group    bypass
source   a sweep
expect   ok

lanes A, B
pinned t[2]
event e, f
mailbox box
"""
FULL = "host publishes e to box\nhost publishes e to box\n"
LOST = "A writes t[0]\nB writes t[0]\nB writes t[0]\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (FULL, "error"),
        ("A awaits f record 1\n" + FULL, "error"),
        ("A awaits f record 1\nhost syncs lane A\n" + FULL, "cycle"),  # the calls behind it are never made
        ("A writes t\nB awaits e record 1\nB reads t\nA records e\n", "ok"),
        (LOST, "bad"),  # two writes in the wrong order, even where nobody reads what is overwritten later
    ],
    ids=["full mailbox", "full beside a lane that stands", "behind a host that stands", "await", "lost write"],
)
def test_torch_lanes_show(body: str, verdict: str) -> None:
    outcome = explore(parse(HEAD + body))
    assert outcome.verdict == verdict
    assert [one.verdict(outcome) for one in lane_judges("torch", "cpu")] == [verdict]
