"""Names in an event log: of what was recorded on, and of the host's memory that batches lie in."""

from __future__ import annotations

import zlib

import numpy as np

from warfence.core.fence import AtLeast, TicketSource

REMEMBERED = 256  # sources that may be recorded again; a backend's ring of events is shorter
KEPT = 64  # staging arrays that may be loaded again


class SourceNames:
    """Gives each ticket source its name, the same one when a backend records on the same source again."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[TicketSource, str, int]] = {}  # by identity; in order of the last record
        self._ahead: dict[tuple[int, int], tuple[AtLeast, str]] = {}  # by word and value
        self._count = 0

    def recorded(self, source: TicketSource, kind: str) -> tuple[str, int]:
        """(name, how often it was recorded). kind: what it is called, without its number."""
        if ahead := self.ahead(source):
            return ahead, 1
        _, name, generation = self._known.pop(id(source), (source, "", 0))
        if not generation:
            self._count += 1
            name = f"{kind} #{self._count}"
            if len(self._known) >= REMEMBERED:
                del self._known[next(iter(self._known))]
        self._known[id(source)] = (source, name, generation + 1)
        return name, generation + 1

    def awaited(self, source: AtLeast) -> str:
        """The name of a value that a lane waits for before its launch was issued."""
        self._count += 1
        made = f"word >= {source.value} #{self._count}"
        return self._ahead.setdefault((id(source.word), source.value), (source, made))[1]

    def ahead(self, source: TicketSource) -> str:
        """The name that `awaited` gave to this value; empty where it gave none."""
        if not self._ahead or not isinstance(source, AtLeast):
            return ""
        return self._ahead.get((id(source.word), source.value), (source, ""))[1]


class Words:
    """Staging memory on the host, by the array that owns it: named while it lives, and written whenever it differs."""

    def __init__(self) -> None:
        self._owners: dict[int, tuple[np.ndarray, str, int]] = {}  # (owner, its name, checksum when it was loaded last)
        self._count = 0

    def loaded(self, words: np.ndarray) -> tuple[bool, tuple[str, int, int]]:
        """Of a batch that was loaded: whether the host had written it since, and (resource, begin, end) in words."""
        owner = words
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        begin = (words.ctypes.data - owner.ctypes.data) // words.itemsize
        checksum = zlib.crc32(words.tobytes())
        known = self._owners.pop(id(owner), None)
        if known is None:
            self._count += 1
        name = known[1] if known is not None else f"batch words {self._count}"
        self._owners[id(owner)] = (owner, name, checksum)
        if len(self._owners) > KEPT:
            del self._owners[next(iter(self._owners))]
        return known is None or known[2] != checksum, (name, begin, begin + words.size)
