"""What a trace of a function says about each of its operations."""

from __future__ import annotations

from typing import Any, NamedTuple


class Access(NamedTuple):
    """Cells [begin, end) of one shared array, counted in its elements from its first one."""

    name: str
    begin: int
    end: int

    def __str__(self) -> str:
        return f"{self.name}[{self.begin}:{self.end}]"


class Operation(NamedTuple):
    """One operation of a traced function, in program order, or one node of a captured graph.

    position: from 0. name: as the framework calls it. kind: what it is called in a report. stage: of the forward that it
    belongs to; empty outside of one. where: file and line of the caller's code, innermost first, joined by " < ". reads,
    writes: shared cells only. unseen: why its accesses cannot be seen; empty where they can.
    """

    position: int
    name: str
    stage: str = ""
    where: str = ""
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    unseen: str = ""
    kind: str = "operation"

    def __str__(self) -> str:
        stage = f" of stage '{self.stage}'" if self.stage else ""
        return f"{self.kind} {self.position} ({self.name}){stage}" + (f" at {self.where}" if self.where else "")

    def document(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return self._asdict() | {"reads": [str(a) for a in self.reads], "writes": [str(a) for a in self.writes]}
