"""What happened, in order: one frozen entry for each thing that a lane did, and one for each launch that was issued.

Checkers, timelines and tests read the same list. Law 1, for instance, is a sentence about it: for every `write` of
launch L, every `stage` that has tables and a launch of at most L stands before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["stage", "write", "wait", "record", "gate"]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One thing that one lane did.

    time: virtual, in steps: unique, ascending, one for each entry.
    launch: of a stage, marker or gate its own; of a wait or record that of the ticket; of a write the launch issued
    last before the write was enqueued, so all launches up to this one are earlier. 0: before any, or of no launch.
    name: the stage, table, gate position, or what was waited for or recorded.
    tables: the shared tables that a stage reads or a write changes.
    """

    time: int
    lane: str
    kind: Kind
    launch: int
    name: str
    tables: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.time:6} {self.lane:9} {self.kind:6} launch {self.launch:<4} {self.name}"
