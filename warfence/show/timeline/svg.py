"""A timeline as a static picture: light and dark, in print, without colour, and for who has it read aloud.

Colours are those of Okabe and Ito; a pattern at the foot of a slice says the same, so nothing hangs on a colour. Text is
text. One picture is one SVG element that stands alone or inside a page.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warfence.core.errors import InputError
from warfence.show.templates import templates
from warfence.show.timeline.labels import width as text_width
from warfence.show.timeline.model import Timeline
from warfence.show.timeline.panel import Panel
from warfence.show.timeline.shapes import LEFT, RIGHT, Drawn, Scale

WIDTH = 1280
LEAST = 1e-3  # of a scale, on each side of a boundary
PATTERNS, LINES = ("reads", "write", "wait"), ("edge", "war", "order")  # kinds with a pattern; kinds that are lines
LEGEND = (
    ("stage", "stage"), ("reads", "reads shared tables"), ("write", "writes a shared table"),
    ("wait", "wait"), ("call", "host call"), ("edge", "read boundary"), ("war", "fence: record to wait"),
    ("order", "other order"),
)  # fmt: skip
KEY_HEIGHT, ROW = 50, 22


def svg(timeline: Timeline, width: int = WIDTH) -> str:
    """One timeline from its first to its last time; `Timeline.between` cuts one out."""
    return _document([Panel(timeline, _whole(timeline, width), width)], width)


def stacked_svg(timelines: Sequence[Timeline], launches: Sequence[int] | None = None, width: int = WIDTH) -> str:
    """Timelines one above the other, the read boundary of one launch of each (left out: its first) at the same place.

    One scale for all where they have the same unit. InputError where a timeline has no read boundary.
    """
    if not timelines:
        raise InputError("stacked_svg needs at least one timeline")
    chosen = launches or [_first_boundary(timeline) for timeline in timelines]
    places: list[tuple[float, float, float]] = []  # (first, boundary, last) of each
    for timeline, launch in zip(timelines, chosen, strict=True):
        at = timeline.boundary(launch)
        if at is None:
            raise InputError(f"'{timeline.title}': launch {launch} has no read boundary to align")
        begin, end = _ends(timeline)
        places.append((min(begin, at - LEAST), at, max(end, at + LEAST)))
    room = width - LEFT - RIGHT
    if len({timeline.unit for timeline in timelines}) == 1:
        before, after = max(at - a for a, at, _ in places), max(b - at for _, at, b in places)
        scales = [Scale(LEFT + room * before / (before + after), at, room / (before + after)) for _, at, _ in places]
    else:  # steps beside microseconds: each as wide as there is room, around one place for all
        share = sum((at - a) / (b - a) for a, at, b in places) / len(places)
        scales = [
            Scale(LEFT + room * share, at, room * min(share / (at - a), (1 - share) / (b - at))) for a, at, b in places
        ]
    return _document([Panel(t, s, width) for t, s in zip(timelines, scales, strict=True)], width)


def _first_boundary(timeline: Timeline) -> int:
    if not timeline.marks:
        raise InputError(f"'{timeline.title}' has no read boundary to align; trace a mode that reads shared tables")
    return min(timeline.marks, key=lambda mark: mark.time).launch


def _ends(timeline: Timeline) -> tuple[float, float]:
    """First and last time of what is shown: what was cut out, or all that the lanes did."""
    if timeline.shown is not None:
        return timeline.shown
    work = [s for s in timeline.slices if s.kind in ("stage", "write")] or list(timeline.slices)
    if not work:
        raise InputError(f"'{timeline.title}' is empty: nothing was traced")
    return min(s.begin for s in work), max(s.end for s in work)


def _whole(timeline: Timeline, width: int) -> Scale:
    begin, end = _ends(timeline)
    return Scale(LEFT, begin, (width - LEFT - RIGHT) / max(end - begin, 1e-3))


def _document(panels: Sequence[Panel], width: int) -> str:
    """All panels and one key."""
    drawn: list[Drawn] = []
    y = 10.0
    for panel in panels:
        one, y = panel.draw(y)
        drawn.append(one)
        y += 14
    titles = "; ".join(panel.timeline.title for panel in panels)
    picture = templates("warfence.show.timeline").get_template("timeline.svg.j2").render(
        panels=drawn, key=[*_key(y, width)], width=width, height=round(y + KEY_HEIGHT), titles=titles,
        name=f"wft-{zlib.crc32(titles.encode()):x}", said=" ".join(panel.description() for panel in panels),
    )  # fmt: skip
    return picture + "\n"


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign of the key and what it means. line: it is one; pattern: it has one."""

    kind: str
    text: str
    x: float
    y: float
    line: bool
    pattern: bool


def _key(y: float, width: int) -> Iterator[Sign]:
    """In as many rows as it takes."""
    x = float(LEFT)
    for kind, text in LEGEND:
        needed = 34 + text_width(text) + 18
        if x + needed > width - RIGHT:
            x, y = float(LEFT), y + ROW
        yield Sign(kind, text, x, y, kind in LINES, kind in PATTERNS)
        x += needed
