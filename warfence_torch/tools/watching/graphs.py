"""What captured graphs do: remembered at the capture, put into the log at each replay.

A stream that forks off inside a capture is a lane of its own inside each replay, named `lane/stream`: nothing orders it
with that stream's other work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from warfence.races.check.events import WAITS, Event
from warfence_torch.tools.watching.journal import Journal


@dataclass(frozen=True, slots=True)
class Captured:
    """The steps of one graph, as events on the streams of the capture. `lane`: the stream where it began."""

    graph: object
    lane: str
    steps: list[Event] = field(default_factory=list)

    def replay(self, journal: Journal, lane: str) -> None:
        """All steps, here and now, for the next launch."""
        journal.launches += 1
        for step in self.steps:
            event = step._replace(lane=self._inside(step.lane, lane))
            if step.other:
                event = event._replace(other=self._inside(step.other, lane))
            if step.kind not in WAITS:  # a wait's launch would be the one that it is meant for
                event = event._replace(launch=journal.launches)
            if step.kind == "record":
                event = event._replace(generation=journal.generation(step.event))
            journal.append(event)

    def _inside(self, stream: str, lane: str) -> str:
        return lane if stream == self.lane else f"{lane}/{stream}"


class Graphs:
    """The graphs of one watch, and the capture that is going on (one at a time, as torch has it)."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._done: dict[int, Captured] = {}
        self._unknown: set[str] = set()
        self.capture: Captured | None = None

    def begin(self, graph: object, lane: str) -> None:
        self.capture = Captured(graph, lane)

    def end(self, complete: bool) -> None:
        """The capture is over; one that failed leaves no graph."""
        captured, self.capture = self.capture, None
        if captured is not None and complete:
            self._done[id(captured.graph)] = captured

    def reset(self, graph: object) -> None:
        self._done.pop(id(graph), None)

    def forget(self) -> None:
        """Let go of all graphs."""
        self._done.clear()
        self.capture = None

    def replay(self, graph: object, lane: str, where: Callable[[], str]) -> None:
        captured = self._done.get(id(graph))
        if captured is not None:
            captured.replay(self._journal, lane)
            return
        name = self._journal.name(graph, "graph ")
        if name not in self._unknown:
            self._unknown.add(name)
            self._journal.miss(
                f"ALL that '{name}' reads and writes: it was captured before the watch began (replayed at {where()}); "
                f"begin the watch before the capture."
            )
