"""Small torch programs from public reports (and a few more), each racy and fixed: `PAIRS[name](stand, racy)`.

Names are those of the reports' scenarios; `expresses` lists the scenarios that a pair stands for.
Over 300 lines, because it is one flat list: each pair stands by itself, and they are read beside each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tests.torch_backend.watch.stands import Stand, Work

Program = Callable[[Stand, bool], None]


@dataclass(frozen=True)
class Pair:
    """blocks: it is about blocks that the allocator hands on, which takes CUDA, and a watch of blocks."""

    program: Program
    expresses: tuple[str, ...]
    blocks: bool


PAIRS: dict[str, Pair] = {}
# Scenarios that no torch program can execute, or whose fault is no unordered access, and why.
NOT_EXPRESSED = {
    "wait-cycle": "an execution of it never ends",
    "stale-static": "a stale value, all accesses are ordered",
    "double-donation": "torch has no donation",
    "donation-hold": "torch has no donation",
    "donation-refused": "torch has no donation",
}


def pair(name: str, *expresses: str, blocks: bool = False) -> Callable[[Program], Program]:
    def add(program: Program) -> Program:
        PAIRS[name] = Pair(program, expresses, blocks)
        return program

    return add


def read(x: Tensor) -> Work:
    return lambda: x.sum()


def write(x: Tensor) -> Work:
    return lambda: x.fill_(1.0)


def copy(to: Tensor, source: Tensor) -> Work:
    return lambda: to.copy_(source, non_blocking=True)


def row(x: Tensor) -> Tensor:
    return x[8:16]


def fenced(s: Stand, lane: str = "S") -> None:
    """F reads the row, and the lane waits for that."""
    s.run("F", read(row(s.shared["t"])))
    done = s.event()
    s.record("F", done)
    s.wait(lane, done)


@pair("no-fence", "no-fence", "coarse")
def _(s: Stand, racy: bool) -> None:
    t = row(s.shared["t"])
    s.wait_lane("F", "S")
    s.run("F", read(t))
    if not racy:
        s.wait_lane("S", "F")
    s.run("S", write(t))


@pair("pre-reread", "pre-reread", "pre-snapshot")
def _(s: Stand, racy: bool) -> None:
    t, m, done = row(s.shared["t"]), row(s.shared["m"]), s.event()
    graph = s.capture("F", read(t if racy else m))
    s.run("F", copy(m, t))
    s.record("F", done)
    s.replay("F", graph)
    s.wait("S", done)
    s.run("S", write(t))


@pair("in-graph-late-read", "in-graph-late-read", "in-graph")
def _(s: Stand, racy: bool) -> None:
    t, live, m, marker = row(s.shared["t"]), row(s.shared["map"]), row(s.shared["m"]), s.marker()
    graph = s.capture("F", read(t), copy(m, live), marker, read(live if racy else m))
    for _ in range(2):
        s.replay("F", graph)
        s.wait("S", marker)
        s.run("S", write(live))
        s.wait_lane("F", "S")


@pair("post", "post")
def _(s: Stand, racy: bool) -> None:
    t, done = row(s.shared["t"]), s.event()
    graph = s.capture("F", read(t))
    if racy:
        s.record("F", done)
    s.replay("F", graph)
    if not racy:
        s.record("F", done)
    s.wait("S", done)
    s.run("S", write(t))


@pair("barrier-at-loop-top", "barrier-at-loop-top", "barrier-after-launch")
def _(s: Stand, racy: bool) -> None:
    live, done = row(s.shared["map"]), [s.event(), s.event()]
    graph = s.capture("F", read(live))
    for launch in range(2):
        s.replay("F", graph)
        s.record("F", done[launch])
        if not racy:
            s.wait("S", done[launch])
        s.run("S", write(live))
        if racy:
            s.wait("S", done[launch])
        s.wait_lane("F", "S")


@pair("wrong-owner", "wrong-owner")
def _(s: Stand, racy: bool) -> None:
    t, target, draft = row(s.shared["t"]), s.event(), s.event()
    verify, extend = s.capture("F", read(t)), s.capture("F", read(t))
    s.replay("F", verify)
    s.record("F", target)
    s.replay("F", extend)
    s.record("F", draft)
    s.wait("S", target if racy else draft)
    s.run("S", write(t))


@pair("plan-lane", "plan-lane", "plan-lane-inherits")
def _(s: Stand, racy: bool) -> None:
    fenced(s)
    if not racy:
        s.wait_lane("P", "S")
    s.run("P", write(row(s.shared["t"])))


@pair("re-record", "re-record")
def _(s: Stand, racy: bool) -> None:
    produced = s.event()
    other = produced if racy else s.event()
    s.run("F", write(row(s.shared["m"])))
    s.record("F", produced)
    s.run("S", write(row(s.shared["kv"])))
    s.record("S", other)
    s.wait("C", produced)
    s.run("C", read(row(s.shared["m"])))


@pair("kv-reuse", "kv-reuse")
def _(s: Stand, racy: bool) -> None:
    page = s.shared["kv"][16:32]
    s.run("F", write(page))
    if not racy:
        s.wait_lane("X", "F")
    s.run("X", copy(page, s.shared["m"][16:32]))


@pair("kv-backup", "kv-backup")
def _(s: Stand, racy: bool) -> None:
    page = s.shared["kv"][16:32]
    s.run("F", write(page))
    if not racy:
        s.wait_lane("X", "F")
    s.run("X", copy(s.pin[16:32], page))


@pair("state-snapshot", "state-snapshot")
def _(s: Stand, racy: bool) -> None:
    state, done = row(s.shared["kv"]), s.event()
    s.replay("F", s.capture("F", write(state)))
    s.record("F", done)
    if not racy:
        s.wait("S", done)
    s.run("S", copy(row(s.shared["m"]), state))


@pair("host-staging", "host-staging", "host-staging-fenced")
def _(s: Stand, racy: bool) -> None:
    done = s.event()
    s.pin.fill_(1.0)
    s.run("F", copy(s.shared["t"], s.pin))
    s.record("F", done)
    if not racy:
        s.synchronize(done)
    s.pin.fill_(2.0)


@pair("zeroing", "zeroing")
def _(s: Stand, racy: bool) -> None:
    done = s.event()
    for page in (s.shared["kv"][:16], s.shared["kv"][16:32]):
        s.pin[:16].zero_()
        s.run("F", copy(page, s.pin[:16]))
        s.record("F", done)
        if not racy:
            s.synchronize(done)


@pair("alias", "alias", "alias-copied")
def _(s: Stand, racy: bool) -> None:
    array = s.pin.numpy()
    source = torch.from_numpy(array)
    if not racy:
        source = source.clone().pin_memory() if s.shared["t"].is_cuda else source.clone()
    s.run("F", copy(s.shared["t"], source))
    torch.from_numpy(array)[:8].fill_(2.0)


@pair("ring-stream-wait", "ring-stream-wait")
def _(s: Stand, racy: bool) -> None:
    t, ring = row(s.shared["t"]), [s.event(), s.event()]
    graph = s.capture("F", read(t))
    for launch in range(5):
        s.replay("F", graph)
        s.record("F", ring[launch % 2])
        s.wait("S", ring[(launch + racy) % 2])  # racy: the other slot, which holds the record of the step before
        s.run("S", write(t))
        s.wait_lane("F", "S")


@pair("fence-before-last-reader", "fence-before-last-reader")
def _(s: Stand, racy: bool) -> None:
    table, taken, done = row(s.shared["map"]), s.event(), s.event()
    s.run("S", copy(s.shared["t"], s.pin))
    s.record("S", taken)
    s.wait_lane("F", "S")
    s.run("F", read(s.shared["t"]))
    s.run("F", read(table))
    s.record("F", done)
    s.synchronize(taken if racy else done)
    s.run("S", write(table))


@pair("out-of-region", "out-of-region")
def _(s: Stand, racy: bool) -> None:
    a, b, done = row(s.shared["t"]), row(s.shared["map"]), s.event()
    s.run("F", read(a))
    if racy:
        s.record("F", done)
    s.run("F", read(b))
    if not racy:
        s.record("F", done)
    s.wait("S", done)
    s.run("S", lambda: torch._foreach_add_([a, b], 1.0))


@pair("bypass", "bypass")
def _(s: Stand, racy: bool) -> None:
    fenced(s)
    s.run("S", write(row(s.shared["t"])))
    if not racy:
        s.wait_lane("X", "S")
    s.run("X", write(row(s.shared["t"])))


@pair("zombie-row", "zombie-row")
def _(s: Stand, racy: bool) -> None:
    t, ended = row(s.shared["t"]), s.event()
    graph = s.capture("F", read(t))
    s.replay("F", graph)
    s.record("F", ended)
    s.replay("F", graph)  # the surplus step of a request that has ended
    s.synchronize(ended)
    if not racy:
        s.wait_lane("S", "F")
    s.run("S", write(t))


@pair("wrong-stream", "wrong-stream")
def _(s: Stand, racy: bool) -> None:
    t, done = row(s.shared["t"]), s.event()
    s.run("F", read(t))
    s.record("X" if racy else "F", done)
    s.wait("S", done)
    s.run("S", write(t))


@pair("view", "view")
def _(s: Stand, racy: bool) -> None:
    base = s.shared["t"]
    s.run("F", read(base[0:8]))
    s.run("S", write(base.view(-1)[4:12] if racy else base.view(-1)[8:16]))


@pair("host-query", "host-query")
def _(s: Stand, racy: bool) -> None:
    t, before, done = row(s.shared["t"]), s.event(), s.event()
    s.record("F", before)
    s.run("F", read(t))
    s.record("F", done)
    s.ask(before if racy else done)
    s.run("S", write(t))


@pair("wrapper", "wrapper")
def _(s: Stand, racy: bool) -> None:
    t, marker = row(s.shared["t"]), s.marker()
    first, second = s.capture("F", read(t), *[marker] * racy), s.capture("F", read(t), *[marker] * (not racy))
    s.replay("F", first)
    s.replay("F", second)
    s.wait("S", marker)
    s.run("S", write(t))


@pair("marker-missing", "marker-missing")
def _(s: Stand, racy: bool) -> None:
    t, marker = row(s.shared["t"]), s.marker()
    graph = s.capture("F", read(t), *[marker] * (not racy))
    if racy:
        s.record("F", marker)
    s.replay("F", graph)
    s.wait("S", marker)
    s.run("S", write(t))


@pair("failed-snapshot", "failed-snapshot")
def _(s: Stand, racy: bool) -> None:
    t, done = row(s.shared["t"]), s.event()
    graph = s.capture("F", read(t))
    for launch in range(2):
        s.replay("F", graph)
        if launch == 0 or not racy:  # the second time the snapshot fails, and the old record is taken for its
            s.record("F", done)
    s.wait("S", done)
    s.run("S", write(t))


@pair("never-recorded")
def _(s: Stand, racy: bool) -> None:
    t, done = row(s.shared["t"]), s.event()
    s.run("F", read(t))
    if not racy:
        s.record("F", done)
    s.wait("S", done)
    s.run("S", write(t))


@pair("wait-before-launch")
def _(s: Stand, racy: bool) -> None:
    t, marker = row(s.shared["t"]), s.marker()
    graph = s.capture("F", read(t), marker)
    s.replay("F", graph)
    if racy:
        s.wait("S", marker)  # binds to the first launch's record
    s.replay("F", graph)
    if not racy:
        s.wait("S", marker)
    s.run("S", write(t))


@pair("block-lifetime", "block-lifetime", "block-kept", blocks=True)
def _(s: Stand, racy: bool) -> None:
    block, done = s.allocate("S"), s.event()
    address = block.data_ptr()
    s.wait_lane("F", "S")
    s.run("F", read(block))
    s.record("F", done)
    if not racy:
        s.synchronize(done)
    del block
    others = [s.allocate("S")]
    while others[-1].data_ptr() != address and len(others) < 64:
        others.append(s.allocate("S"))  # until the allocator hands that block on
