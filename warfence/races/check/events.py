"""One kind of event. A recorder's log is what the host called and what it enqueued, in the order of the calls.

The steps of a replay stand in the log where the replay was called, in their order on the lane. An operation is a run of
accesses of one lane, launch and stage: what lies inside it has no order that a fence could use.

The log of the strict backend is made of the same events, in the order in which its lanes did them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

HOST = "host"  # the host's own lane: its accesses happen at the call
ACCESSES = frozenset({"alloc", "free", "read", "write"})
WAITS = frozenset({"await", "host_sync", "refused", "wait", "wait_lane"})
STEPS = frozenset({"gate", "stage"})
KINDS = (*sorted(ACCESSES), "record", *sorted(WAITS), *sorted(STEPS))

Kind = Literal[
    "alloc", "free", "read", "write", "record", "await", "host_sync", "refused", "wait", "wait_lane", "stage", "gate",
]  # fmt: skip


class Event(NamedTuple):
    """One line of the log. Frozen, and as cheap as a tuple: logs have millions.

    kind: read and write touch cells [begin, end) of `resource`. alloc: the block is handed out for use on this lane,
    which may write it from here on; free: its owner lets go of it, which orders nothing. record: `event` takes the
    lane's position. wait: the lane waits for what `event` holds at this place of the log. refused: such a wait, which
    the backend refused, so that it orders nothing. await: the lane waits for record number `generation` of `event`,
    wherever that stands in the log. wait_lane: it waits for all that is enqueued on `other`. host_sync: the host waits
    until `event` (or lane `other`) is done, blocking, or asking until the answer is yes. stage: it begins, and what it
    touches follows; gate: the lane is past the gate at `stage`. These two order nothing.
    launch: of an access or record the one it belongs to, of a wait the one it is meant for. 0: none.
    generation: of a record its number, of a wait the number that its ticket names. 0: not known.
    where: a short text, such as a line or a stack.
    """

    kind: Kind
    lane: str
    launch: int = 0
    stage: str = ""
    resource: str = ""
    begin: int = 0
    end: int = 0
    event: str = ""
    generation: int = 0
    other: str = ""
    where: str = ""

    @property
    def title(self) -> str:
        """This event as a phrase: what, of which launch, on which lane."""
        stage = f"'{self.stage}'" if self.stage else f"a {self.kind}"
        launch = f" of launch {self.launch}" if self.launch else ""
        return f"{stage}{launch} on lane {self.lane}"

    @property
    def cells(self) -> str:
        return f"{self.resource}[{self.begin}:{self.end}]"
