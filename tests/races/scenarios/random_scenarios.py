"""Random programs for property tests, as text."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

HEAD = """scenario random
title    Random
group    bypass
source   random
expect   ok

lanes A, B, C
pinned t[4]
event e, f
mailbox box

"""
LANES, EVENTS = st.sampled_from("ABC"), st.sampled_from("ef")
CELLS = st.sampled_from(["t[0]", "t[1]", "t[0:2]", "t[1:4]"])
ACCESS = st.builds("{} {}".format, st.sampled_from(["reads", "writes"]), CELLS)
BOUND = [
    st.builds("{} {}".format, LANES, ACCESS),
    st.builds("{} {}".format, LANES, ACCESS),
    st.builds("{} records {}".format, LANES, EVENTS),
    st.builds("{} waits {}".format, LANES, EVENTS),
    st.builds("{} waits lane {}".format, LANES, LANES),
    st.builds("launch 1 on {} {{\n{}\nrecords {}\n{}\n}}".format, LANES, ACCESS, EVENTS, ACCESS),
]
HOST = [
    st.builds("host {}".format, ACCESS),
    st.builds("host syncs {}".format, EVENTS),
    st.builds("host polls {}".format, EVENTS),
    st.builds("host syncs lane {}".format, LANES),
]
AWAIT = [st.builds("{} awaits {} record {}".format, LANES, EVENTS, st.integers(1, 2))]
BOXES = [
    st.builds("host clears box\nhost publishes {} to box".format, EVENTS),
    st.builds("{} takes box else lane {}".format, LANES, LANES),
    st.builds("{} takes box".format, LANES),
    st.just("host receives box"),
]


def programs(sentences: list[st.SearchStrategy[str]], longest: int) -> st.SearchStrategy[str]:
    """Programs of one host thread."""
    return st.lists(st.one_of(sentences), min_size=2, max_size=longest).map(
        lambda lines: HEAD + "\n".join(lines) + "\n"
    )


def fenced(longest: int) -> st.SearchStrategy[str]:
    """Programs without races: each access waits for all other lanes, in any order, often too much and often by detours."""

    def access(lane: str, others: list[str], touch: str) -> str:
        verb = "syncs" if lane == "host" else "waits"
        return "\n".join([*(f"{lane} {verb} lane {other}" for other in others if other != lane), f"{lane} {touch}"])

    lanes = st.sampled_from(["A", "B", "C", "host"])
    body = st.lists(st.builds(access, lanes, st.permutations("ABC"), ACCESS), min_size=2, max_size=longest)
    return body.map(lambda lines: HEAD + "\n".join(lines) + "\n")


def named(longest: int) -> st.SearchStrategy[str]:
    """Programs in which reads name the launch whose write they have to see; each launch writes once."""
    reads = st.builds("{} reads t[0] of launch {}".format, LANES, st.integers(1, 3))
    waits = st.one_of(BOUND[2:5] + AWAIT)
    launch = st.builds("{}\nlaunch N on {} {{\nwrites t[0]\n}}".format, waits, LANES)
    lines = st.lists(st.one_of(reads, waits, waits, launch, launch), min_size=3, max_size=longest)

    def numbered(lines: list[str]) -> str:
        body, launch = "\n".join(lines), 0
        while "launch N" in body:
            launch += 1
            body = body.replace("launch N", f"launch {launch}", 1)
        return HEAD + body + "\n"

    return lines.map(numbered)


def threaded(longest: int, more: Sequence[st.SearchStrategy[str]] = ()) -> st.SearchStrategy[str]:
    """Programs of two host threads."""
    body = st.lists(st.one_of([*BOUND, *HOST, *BOXES, *more, *more]), min_size=1, max_size=longest).map("\n".join)
    return st.builds((HEAD + "{}\nthread other {{\n{}\n}}\n").format, body, body)
