"""Random programs for property tests, as text."""

from __future__ import annotations

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


def threaded(longest: int) -> st.SearchStrategy[str]:
    """Programs of two host threads."""
    body = st.lists(st.one_of(BOUND + HOST + BOXES), min_size=1, max_size=longest).map("\n".join)
    return st.builds((HEAD + "{}\nthread other {{\n{}\n}}\n").format, body, body)
