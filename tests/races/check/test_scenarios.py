"""The programs of shared/cases/scenarios.md that an event log can express, each with its verdict, and fixed twins."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from warfence.races.check.programs import Program, R, W
from warfence.races.check.report import check

Build = Callable[[Program], object]
CORPUS: dict[str, tuple[str, Build]] = {}
T, MAP, PIN = ("t", 3), ("map", 7), ("pin", 0, 16)


def scenario(name: str, verdict: str) -> Callable[[Build], Build]:
    def add(build: Build) -> Build:
        CORPUS[name] = verdict, build
        return build

    return add


def chain(name: str, verdict: str, build: Build) -> None:
    CORPUS[name] = verdict, build


chain("coarse", "ok", lambda p: p.wait_lane("F", "S").run("F", R(*T)).wait_lane("S", "F").run("S", W(*T)))
chain("no-fence", "bad", lambda p: p.wait_lane("F", "S").run("F", R(*T)).run("S", W(*T)))


@scenario("pre-snapshot", "ok")
def _(p: Program) -> None:
    p.run("F", R(*T), W("m")).record("F", "e").run("F", R("m")).wait("S", "e").run("S", W(*T))


@scenario("pre-reread", "bad")
def _(p: Program) -> None:
    p.run("F", R(*T), W("m")).record("F", "e").run("F", R(*T)).wait("S", "e").run("S", W(*T))


def replay(p: Program, *after: object, before: tuple[object, ...] = (R(*T), W("m"))) -> Program:
    with p.replay("F", 1) as step:
        step(*before, record="E")
        step(*after)
    return p


chain("in-graph", "ok", lambda p: replay(p, R("m")).wait("S", "E").run("S", W(*T)))
chain("in-graph-late-read", "bad", lambda p: replay(p, R(*MAP)).wait("S", "E").run("S", W(*MAP)))
chain("in-graph-late-read-fixed", "ok", lambda p: replay(p, before=(R(*T), R(*MAP))).wait("S", "E").run("S", W(*MAP)))
chain("post", "ok", lambda p: p.run("F", R(*T)).record("F", "e").wait("S", "e").run("S", W(*T)))
chain(
    "post-early", "over", lambda p: p.run("F", R(*T)).run("F", R("m")).record("F", "e").wait("S", "e").run("S", W(*T))
)
chain("coarse-early", "over", lambda p: p.run("F", R(*T)).run("F", R("m")).wait_lane("S", "F").run("S", W(*T)))
chain(
    "barrier-at-loop-top", "bad",
    lambda p: p.run("F", R(*MAP), launch=2).record("F", "e2", 2).run("S", W(*MAP)).wait("S", "e2", 2),
)  # fmt: skip
chain(
    "barrier-after-launch", "ok",
    lambda p: p.run("F", R(*MAP), launch=2).record("F", "e2", 2).wait("S", "e2", 2).run("S", W(*MAP)),
)  # fmt: skip


def verify_and_draft(p: Program, owner: str) -> None:
    p.run("F", R(*T), stage="verify").record("F", "target").run("F", R(*T), stage="draft extend")
    p.record("F", "draft").wait("S", owner).run("S", W(*T))


chain("wrong-owner", "bad", lambda p: verify_and_draft(p, "target"))
chain("right-owner", "ok", lambda p: verify_and_draft(p, "draft"))
fenced = lambda p: p.run("F", R(*T)).record("F", "e").wait("S", "e")  # noqa: E731
chain("plan-lane", "bad", lambda p: fenced(p).run("P", W(*T)))
chain("plan-lane-inherits", "ok", lambda p: fenced(p).wait_lane("P", "S").run("P", W(*T)))


def recorded_twice(p: Program, second: str) -> None:
    p.run("F", W("b")).record("F", "p").run("S", W("b2")).record("S", second).wait("C", "p").run("C", R("b"))


chain("re-record", "bad", lambda p: recorded_twice(p, "p"))
chain("re-record-fixed", "ok", lambda p: recorded_twice(p, "q"))
chain("block-lifetime", "bad", lambda p: p.wait_lane("F", "S").run("F", R("block")).run("S", W("block")))
chain(
    "block-kept", "ok",
    lambda p: p.wait_lane("F", "S").run("F", R("block")).record("F", "e").sync("e").run("S", W("block")),
)  # fmt: skip
chain("kv-reuse", "bad", lambda p: p.run("F", W("kv", 64, 80)).run("X", W("kv", 64, 80)))
chain("kv-reuse-fixed", "ok", lambda p: p.run("F", W("kv", 64, 80)).wait_lane("X", "F").run("X", W("kv", 64, 80)))
chain("kv-backup", "bad", lambda p: p.run("F", W("kv", 64, 80)).run("X", R("kv", 64, 80)))
chain("kv-backup-fixed", "ok", lambda p: p.run("F", W("kv", 64, 80)).wait_lane("X", "F").run("X", R("kv", 64, 80)))
chain("state-snapshot", "bad", lambda p: p.run("F", W("st", 2)).run("S", R("st", 2), W("tree")))
chain(
    "state-snapshot-fixed", "ok", lambda p: p.run("F", W("st", 2)).wait_lane("S", "F").run("S", R("st", 2), W("tree"))
)
chain("host-staging", "bad", lambda p: p.run("H", W(*PIN)).run("F", R(*PIN)).run("H", W(*PIN)))
chain(
    "host-staging-fenced", "ok",
    lambda p: p.run("H", W(*PIN)).run("F", R(*PIN)).record("F", "e").sync("e").run("H", W(*PIN)),
)  # fmt: skip


@scenario("ring-stream-wait", "ok")
def _(p: Program) -> None:
    for launch in range(1, 7):
        slot = f"slot {launch % 2}"
        p.run("F", R(*T), launch=launch).record("F", slot, launch)
        p.wait("S", slot, launch).run("S", W(*T), launch=launch).wait_lane("F", "S")


def postprocessed(p: Program, early: bool) -> None:
    p.run("S", R(*PIN), W("in"))
    if early:
        p.record("S", "e")
    p.wait_lane("F", "S").run("F", R("in")).run("F", R("bt"))
    if not early:
        p.record("F", "e")
    p.sync("e").run("S", W("bt")).run("H", W(*PIN))


chain("fence-before-last-reader", "bad", lambda p: postprocessed(p, early=True))
chain("fence-after-last-reader", "ok", lambda p: postprocessed(p, early=False))
chain(
    "out-of-region", "bad",
    lambda p: p.run("F", R("a")).record("F", "e").run("F", R("b")).wait("S", "e").run("S", W("a"), W("b")),
)  # fmt: skip
chain(
    "in-region", "ok",
    lambda p: p.run("F", R("a")).run("F", R("b")).record("F", "e").wait("S", "e").run("S", W("a"), W("b")),
)  # fmt: skip
chain("bypass", "bad", lambda p: fenced(p).run("S", W(*T)).run("X", W(*T)))
chain("bypass-fixed", "ok", lambda p: fenced(p).run("S", W(*T)).wait_lane("X", "S").run("X", W(*T)))
chain("alias", "bad", lambda p: p.run("F", R("n", 0, 8)).run("H", W("n", 0, 8)))
chain(
    "alias-copied",
    "ok",
    lambda p: p.run("H", R("n", 0, 8), W("copy", 0, 8)).run("F", R("copy", 0, 8)).run("H", W("n", 0, 8)),
)
chain("zombie-row", "bad", lambda p: p.run("F", R("row", 5), launch=2, stage="surplus step").run("S", W("row", 5)))
chain("zombie-row-fixed", "ok", lambda p: p.run("F", R("row", 5)).wait_lane("S", "F").run("S", W("row", 5)))
zeroing = lambda p: p.run("H", W(*PIN)).run("F", R(*PIN), W("kv", 0, 4))  # noqa: E731
chain("zeroing", "bad", lambda p: zeroing(zeroing(p)))
chain("zeroing-fixed", "ok", lambda p: zeroing(zeroing(p).record("F", "e").sync("e")))
chain("wrong-stream", "bad", lambda p: p.run("F", R(*T)).record("X", "e").wait("S", "e").run("S", W(*T)))
chain("view", "bad", lambda p: p.run("F", R("base", 0, 8)).run("S", W("base", 4, 12)))
chain("view-beside", "ok", lambda p: p.run("F", R("base", 0, 8)).run("S", W("base", 8, 12)))
chain("host-query", "ok", lambda p: p.run("F", R(*T)).record("F", "e").sync("e").run("S", W(*T)))


def layers(p: Program, marker: int) -> None:
    with p.replay("F", 1) as step:
        for layer in range(2):
            step(R(*T), record="E" if layer == marker else "")
    p.wait("S", "E").run("S", W(*T))


chain("wrapper", "bad", lambda p: layers(p, 0))
chain("wrapper-fixed", "ok", lambda p: layers(p, 1))
chain("marker-missing", "bad", lambda p: p.record("F", "E").run("F", R(*T)).wait("S", "E").run("S", W(*T)))
chain(
    "failed-snapshot", "bad",
    lambda p: p.run("F", R(*T), launch=1).record("F", "e", 1).run("F", R(*T), launch=2).wait("S", "e", 2).run("S", W(*T)),
)  # fmt: skip


def verdict(build: Build) -> str:
    """A stale ticket and a never-recorded wait are mistakes too, but a program is bad only where accesses race."""
    program = Program()
    build(program)
    kinds = check(program.log).kinds()
    return "bad" if "race" in kinds else "over" if kinds == {"over-fencing"} else "ok" if not kinds else str(kinds)


@pytest.mark.parametrize("name", CORPUS)
def test_every_scenario_gets_its_verdict(name: str) -> None:
    expected, build = CORPUS[name]
    assert verdict(build) == expected


def test_recall_and_precision_on_all_scenarios_are_one() -> None:
    bad = {name for name, (expected, _) in CORPUS.items() if expected == "bad"}
    found = {name for name, (_, build) in CORPUS.items() if verdict(build) == "bad"}
    assert len(CORPUS) >= 40
    assert len(found & bad) / len(bad) == 1.0
    assert len(found & bad) / len(found) == 1.0
