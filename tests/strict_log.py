"""What a log of the strict backend says happened."""

from __future__ import annotations

from warfence.parity.strict.log import LogEntry


def writes_before_earlier_reads(log: list[LogEntry]) -> list[tuple[LogEntry, LogEntry]]:
    """Every (write, read) of the log in which a write landed before a read of an earlier launch (law 1).

    Only pairs over a table that both name. Empty when the fence held, however the values came out.
    """
    found = []
    landed: list[LogEntry] = []
    for entry in log:
        if entry.kind == "write":
            landed.append(entry)
        elif entry.kind == "stage" and entry.tables:
            found += [(w, entry) for w in landed if entry.launch <= w.launch and set(w.tables) & set(entry.tables)]
    return found
