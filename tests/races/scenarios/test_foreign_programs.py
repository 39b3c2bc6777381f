"""Programs that people outside wrote, and what is right about each. All of them were judged wrongly once."""

from __future__ import annotations

import pytest

from warfence.core.errors import InputError
from warfence.races.scenarios.explore import explore
from warfence.races.scenarios.parse import parse

HEADER = "title a program\ngroup over-fencing\nsource nobody\n"

ONE_OPERATION = """\
scenario one-operation
{header}expect ok

lanes forward, schedule
table t[4], m[4]
event e

repeat i in 1..2 {
    schedule waits e
    schedule writes t
    forward waits lane schedule
    forward reads t as gather
    forward writes m as gather
    forward records e
    forward reads m
}
"""

NAMED_READ = """\
scenario named-read
{header}expect ok

lanes forward, copy
table input[4]
event ready[2], consumed
mailbox queue

launch 1 on copy {
    writes input
}
copy records ready[0]
host publishes ready[0] to queue
copy awaits consumed record 1
launch 2 on copy {
    writes input
}
copy records ready[1]
thread worker {
    host receives queue
    host syncs ready[0]
    forward reads input of launch 1
    forward records consumed
}
"""

ONE_STEP_TOO_LATE = """\
scenario one-step-too-late
{header}expect over

param N = 5
lanes forward, schedule
table t[16]
event done[N + 1]

launch 1 on forward {
    reads t[1]
}
forward records done[1]
repeat i in 2..N {
    launch i on forward {
        reads t[i]
    }
    forward records done[i]
    schedule waits done[i]
    schedule writes t[i - 1]
}
"""

BLOCKED_HOST = """\
scenario blocked-host
{header}expect ok

lanes forward, x, gate, schedule
table t[8]
event go, e, read

forward awaits go record 1
forward records e
host syncs e
schedule waits read
schedule writes t[3]
thread other {
    x reads t[3]
    x records read
    gate records go
}
"""

WAIT_IN_ONE_BRANCH = """\
scenario wait-in-one-branch
{header}expect bad

lanes forward, schedule
table t[8]

choose {
    launch 1 on forward {
        reads t[3]
    }
    schedule waits lane forward
} or {
    launch 1 on forward {
        reads t[3]
    }
}
schedule writes t[3]
"""

ALLOCATE_THEN_WAIT = """\
scenario allocate-then-wait
{header}expect ok

lanes forward, schedule
event done

schedule allocates x[4]
schedule writes x
forward waits lane schedule
forward reads x
forward records done
host frees x
schedule allocates y[4] at x
schedule waits done
schedule writes y
"""

PROGRAMS = (ONE_OPERATION, NAMED_READ, ONE_STEP_TOO_LATE, BLOCKED_HOST, WAIT_IN_ONE_BRANCH, ALLOCATE_THEN_WAIT)


@pytest.mark.parametrize("text", PROGRAMS, ids=lambda text: text.split()[1])
def test_a_program_of_somebody_else_has_its_verdict(text: str) -> None:
    scenario = parse(text.replace("{header}", HEADER))
    assert explore(scenario).verdict == scenario.expect


@pytest.mark.parametrize("before", ["", "forward records e\n"])
def test_records_are_numbered_from_one(before: str) -> None:
    body = f"param D = 2\nlanes forward, schedule\nevent e\n{before}schedule awaits e record 1 - D\n"
    with pytest.raises(InputError, match=r"line \d+: record -1 of event 'e'; records are numbered from 1"):
        explore(parse(f"scenario early\n{HEADER}expect ok\n\n{body}"))
