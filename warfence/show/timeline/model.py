"""A timeline: tracks with slices, arrows between them, and marks. All times are microseconds since the trace began."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

HOST = "host"  # the track of the calls that the host makes; the others are named after their lanes
Kind = Literal["stage", "write", "wait", "call"]


@dataclass(frozen=True, slots=True)
class Slice:
    """Something that took time on one track. launch: of a table write the one issued last before it was enqueued, so all
    launches up to this one are earlier; of anything else its own. 0: none.

    reads, writes: the shared tables that it touches. stages: those of the forward that it stands for; more than one where
    the backend knows no finer. detail: whatever else there is to say, for the reader of the trace.
    """

    track: str
    name: str
    begin: float
    end: float
    kind: Kind
    launch: int = 0
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    detail: Mapping[str, str] = field(default_factory=dict)

    @property
    def marked(self) -> str:
        """What it does to shared tables, in words; empty where it does nothing."""
        reads = f"reads {', '.join(self.reads)}" if self.reads else ""
        writes = f"writes {', '.join(self.writes)}" if self.writes else ""
        return "; ".join(part for part in (reads, writes) if part)


@dataclass(frozen=True, slots=True)
class Arrow:
    """From where a lane was recorded (a ticket) to where another one goes on that waited for it.

    war: it holds table writes back until reads are over; else it is the other edge, that lets reads see earlier writes.
    """

    source: str
    recorded: float
    target: str
    went_on: float
    name: str
    launch: int
    war: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """A line at one time: where the shared reads of a launch end."""

    track: str
    time: float
    name: str
    launch: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """One run on one backend. about: what the clock is, what a slice stands for; for people.

    unit: "us", or "steps" where time is virtual (one step is then drawn as one microsecond). unix_ns: the time of day at
    0, in nanoseconds since the epoch; None where time is virtual.
    """

    title: str
    about: Mapping[str, str]
    unit: str
    unix_ns: int | None
    tracks: tuple[str, ...]
    slices: tuple[Slice, ...]
    arrows: tuple[Arrow, ...] = ()
    marks: tuple[Mark, ...] = ()
    shown: tuple[float, float] | None = None  # what `between` cut out; slices may reach beyond
    cut: frozenset[int] = frozenset()  # the launches of which it left something out

    @property
    def launches(self) -> tuple[int, ...]:
        """The launches that have a slice on the forward track, ascending."""
        return tuple(sorted({s.launch for s in self.slices if s.kind == "stage"}))

    @property
    def whole_launches(self) -> tuple[int, ...]:
        """Those of which `between` cut nothing off."""
        return tuple(n for n in self.launches if n not in self.cut)

    def mode(self, launch: int) -> str:
        """The forward mode of a launch; empty where it is not known."""
        return next((s.detail.get("mode", "") for s in self.slices if s.launch == launch and s.kind == "stage"), "")

    def between(self, begin: float, end: float) -> Timeline:
        """What lies in [begin, end]: a slice that reaches in is kept as a whole, an arrow when both of its ends are in."""
        slices = tuple(s for s in self.slices if (begin < s.end and s.begin < end) or begin <= s.begin == s.end <= end)
        arrows = tuple(a for a in self.arrows if begin <= a.recorded and a.went_on <= end)
        kept = {id(s) for s in slices}
        cut = self.cut | {s.launch for s in self.slices if s.kind == "stage" and id(s) not in kept}
        marks = tuple(m for m in self.marks if begin <= m.time <= end)
        return replace(self, slices=slices, arrows=arrows, marks=marks, shown=(begin, end), cut=cut)

    def span(self, first: int, last: int) -> tuple[float, float]:
        """From the first stage of launch `first` to the last stage of launch `last`."""
        found = [s for s in self.slices if s.kind == "stage" and first <= s.launch <= last]
        return min(s.begin for s in found), max(s.end for s in found)

    def boundary(self, launch: int) -> float | None:
        """Where the shared reads of a launch end; None where it has none, or that is not known."""
        return next((m.time for m in self.marks if m.launch == launch), None)
