"""Random families of what one call can be besides an access: copies, blocks that change hands, host threads that are blocked."""

from __future__ import annotations

from random import Random

from warfence.races.scenarios.build import Builder, Subject
from warfence.races.sweep.case import Drawn

LANES, EVENTS = ("A", "B", "C"), ("e", "f")
_TOUCHES = tuple(f"{verb} t[{cell}]" for verb in ("reads", "writes") for cell in range(2))
LONGEST = 8  # sentences of each part of a program


def _copies(random: Random, b: Builder) -> None:
    """Operations that read one memory and write another, some of them in two sentences under one name."""
    subjects = b.lanes(*LANES)
    b.declare("table", "t[2]", "u[2]")
    b.declare("event", *EVENTS)
    for number in range(random.randint(2, 2 * LONGEST)):
        subject, event = random.choice(subjects), random.choice(EVENTS)
        source, target = random.sample(("t", "u"), 2)
        cell, other = random.randrange(2), random.randrange(2)
        kind = random.choice(("copy", "gather", "touch", "event", "event"))
        if kind == "copy":
            subject.reads(f"{source}[{cell}]", writes=f"{target}[{other}]")
        elif kind == "gather":
            subject.reads(f"{source}[{cell}]", stage=f"gather{number}").writes(
                f"{target}[{other}]", stage=f"gather{number}"
            )
        elif kind == "touch":
            subject.says(f"{random.choice(('reads', 'writes'))} {source}[{cell}]")
        else:
            subject.says(random.choice((f"records {event}", f"waits {event}", f"waits lane {random.choice(LANES)}")))


def _blocks(random: Random, b: Builder) -> None:
    """A block that is freed and handed out again, with waits anywhere; now and then it is used under its old name."""
    subjects = b.lanes(*LANES)
    b.declare("event", *EVENTS)
    random.choice(subjects).says("allocates x[2]")
    _use(random, subjects, ("x",))
    b.host.says("frees x")
    if random.random() < 0.5:
        _use(random, subjects, ())
    random.choice(subjects).says("allocates y[2] at x")
    _use(random, subjects, ("y",) if random.random() < 0.9 else ("x", "y"))


def _blocked(random: Random, b: Builder) -> None:
    """The host syncs with a lane that awaits what another thread records: blocked, it calls nothing further."""
    a, c, d = b.lanes(*LANES)
    b.declare("table", "t[2]")
    b.declare("event", "go", "ready", "read")

    a.says("awaits go record 1").records("ready")
    if random.random() < 0.8:
        b.host.syncs("ready")
    c.says(random.choice(("waits read", "waits read", "waits ready", "waits lane B")))
    c.says(random.choice(_TOUCHES))
    with b.thread("other"):
        for sentence in random.sample((random.choice(_TOUCHES), "records read"), 2 - (random.random() < 0.2)):
            d.says(sentence)
        random.choice((a, c, d, d)).records("go")
        if random.random() < 0.3:
            d.says(random.choice(_TOUCHES))


def _use(random: Random, subjects: list[Subject], names: tuple[str, ...]) -> None:
    for _ in range(random.randint(1, LONGEST)):
        subject, event = random.choice(subjects), random.choice(EVENTS)
        if names and random.random() < 0.5:
            subject.says(f"{random.choice(('reads', 'writes'))} {random.choice(names)}[{random.randrange(2)}]")
        else:
            subject.says(random.choice((f"records {event}", f"waits {event}", f"waits lane {random.choice(LANES)}")))


COPIES = Drawn("copies", "random programs of copies and gathers between two tables", _copies)
BLOCKS = Drawn("blocks", "random programs in which a block of memory is freed and handed out again", _blocks)
BLOCKED = Drawn(
    "blocked", "random programs of two host threads, one of which waits for the other by way of lanes", _blocked
)
