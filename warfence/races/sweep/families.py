"""All families by name, and those that have no arithmetic: short programs, all of them, and random ones."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from warfence.races.scenarios.build import Builder, Subject
from warfence.races.sweep.case import Drawn, Family, Listed
from warfence.races.sweep.drawn import BLOCKED, BLOCKS, COPIES
from warfence.races.sweep.fence import FENCE
from warfence.races.sweep.named import NAMED
from warfence.races.sweep.ring import RING

LANES, EVENTS, HOST = ("A", "B", "C"), ("e", "f"), "host"
CELLS = ("t[0]", "t[1]", "t[0:2]", "t[1:4]")
LONGEST = 24  # sentences of a random program


def _two_lanes(b: Builder) -> Mapping[str, Subject]:
    a, c = b.lanes("A", "B")
    b.declare("pinned", "t[1]")
    b.declare("event", "e")
    return {"A": a, "B": c, HOST: b.host}


def _of(lane: str, other: str) -> tuple[str, ...]:
    words = ("reads t", "writes t", "records e", "waits e", "awaits e record 1", f"waits lane {other}")
    return tuple(f"{lane} {one}" for one in words)


_OF_HOST = ("host reads t", "host writes t", "host syncs e", "host syncs lane A")


def _anything(random: Random, b: Builder) -> None:
    """Lanes, events, records in launches, awaits, a mailbox and a host that touches pinned memory."""
    subjects = _three_lanes(b)
    b.declare("event", *EVENTS)
    b.declare("mailbox", "box")
    awaits = random.random() < 0.3
    for _ in range(random.randint(2, LONGEST)):
        kind = random.choices(("access", "event", "launch", "host", "box", "await"), (8, 6, 3, 3, 2, awaits))[0]
        lane, event = random.choice(LANES), random.choice(EVENTS)
        subject = subjects[lane]
        if kind == "access":
            subject.says(_touch(random))
        elif kind == "event":
            subject.says(random.choice((f"records {event}", f"waits {event}", f"waits lane {random.choice(LANES)}")))
        elif kind == "launch":
            with b.launch(1, subject) as step:
                step.says(_touch(random)).records(event).says(_touch(random))
        elif kind == "host":
            b.host.says(random.choice((_touch(random), f"syncs {event}", f"polls {event}", f"syncs lane {lane}")))
        elif kind == "box" and random.random() < 0.5:
            if random.random() < 0.9:
                b.host.says("clears box")
            b.host.publishes(event, "box")
        elif kind == "box":
            subject.takes("box", otherwise=subjects[random.choice(LANES)] if random.random() < 0.7 else None)
        else:
            subject.says(f"awaits {event} record {random.randint(1, 2)}")


def _fenced(random: Random, b: Builder) -> None:
    """No races: each access waits for all other lanes in any order, often in vain and often by detours."""
    subjects = _three_lanes(b)
    for _ in range(random.randint(2, LONGEST // 2)):
        name = random.choice((*LANES, HOST))
        for other in random.sample(LANES, len(LANES)):
            if other != name:
                subjects[name].says(f"{'syncs' if name == HOST else 'waits'} lane {other}")
        subjects[name].says(_touch(random))


def _three_lanes(b: Builder) -> Mapping[str, Subject]:
    subjects = dict(zip(LANES, b.lanes(*LANES), strict=True))
    b.declare("pinned", "t[4]")
    return {**subjects, HOST: b.host}


def _touch(random: Random) -> str:
    return f"{random.choice(('reads', 'writes'))} {random.choice(CELLS)}"


SHORT = Listed(
    name="short",
    about="every program of up to so many sentences as --steps says: two lanes, an event, the host, one cell",
    sentences=(*_of("A", "B"), *_of("B", "A"), *_OF_HOST),
    first=(*_of("A", "B"), *_OF_HOST[:2]),
    declare=_two_lanes,
)
RANDOM = Drawn("random", "random programs of three lanes, two events, a mailbox and the host", _anything)
FENCED = Drawn("fenced", "random programs without races, with waits that are often too strong", _fenced)

FAMILIES: Mapping[str, Family] = {
    one.name: one for one in (FENCE, RING, NAMED, SHORT, RANDOM, FENCED, COPIES, BLOCKS, BLOCKED)
}
