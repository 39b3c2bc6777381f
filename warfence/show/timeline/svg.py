"""A timeline as a static picture: light and dark, in print, without colour, and for who has it read aloud.

Colours are those of Okabe and Ito; a pattern at the foot of a slice says the same, so nothing hangs on a colour. Text is
text. One picture is one SVG element that stands alone or inside a page.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from xml.sax.saxutils import escape

from warfence.core.errors import InputError
from warfence.show.timeline.labels import width as text_width
from warfence.show.timeline.model import Timeline
from warfence.show.timeline.panel import LEFT, RIGHT, Panel, Scale

WIDTH = 1280
LEAST = 1e-3  # of a scale, on each side of a boundary
STYLE = """\
.wft{--bg:#fff;--fg:#1a1a1a;--soft:#5a5a5a;--line:#8a8a8a;--war:#00684c;--edge:#0b4f7d;background:var(--bg);\
font:11px system-ui,"DejaVu Sans",sans-serif}
@media (prefers-color-scheme:dark){.wft{--bg:#14171a;--fg:#ececec;--soft:#b4b4b4;--line:#8a8a8a;--war:#3fd0a4;--edge:#7cc4f2}}
@media print{.wft{--bg:#fff;--fg:#000;--soft:#333;--line:#666;--war:#00684c;--edge:#0b4f7d}}
.wft .bg{fill:var(--bg)}.wft text{fill:var(--fg)}.wft .soft{fill:var(--soft)}.wft .h{font-size:14px;font-weight:600}
.wft .on{fill:#000}.wft .halo{paint-order:stroke;stroke:var(--bg);stroke-width:3px;stroke-linejoin:round}
.wft .track{stroke:var(--line);stroke-width:.5}.wft .lead{stroke:var(--line);stroke-width:.7}
.wft .s{stroke:#222;stroke-width:.7}.wft .stage{fill:#56b4e9}.wft .reads{fill:#e69f00}.wft .write{fill:#d55e00}
.wft .call{fill:#c9c9c9}.wft .wait{fill:#e9e9e9;stroke-dasharray:3 2}
.wft .edge{stroke:var(--edge);stroke-width:2;stroke-dasharray:7 4;fill:none}.wft .edgename{fill:var(--edge);font-weight:600}
.wft .war{stroke:var(--war);stroke-width:2;fill:none}.wft .order{stroke:var(--line);stroke-width:1;stroke-dasharray:2 3;fill:none}
.wft .warhead{fill:var(--war)}.wft .orderhead{fill:var(--line)}
"""
PATTERNS = {
    "reads": '<path d="M-1 7 7-1" stroke="#000" stroke-width="1.6"/>',
    "write": '<path d="M0 0 6 6M6 0 0 6" stroke="#000" stroke-width="1.1"/>',
    "wait": '<circle cx="2" cy="2.5" r=".9" fill="#000"/>',
}
HEADS = {"war": 5, "order": 6}  # arrows, and how large their heads are
LEGEND = (
    ("stage", "stage"), ("reads", "reads shared tables"), ("write", "writes a shared table"),
    ("wait", "wait"), ("call", "host call"), ("edge", "read boundary"), ("war", "fence: record to wait"),
    ("order", "other order"),
)  # fmt: skip
KEY_HEIGHT, ROW = 50, 22


def svg(timeline: Timeline, width: int = WIDTH) -> str:
    """One timeline from its first to its last time; `Timeline.between` cuts one out."""
    return _document([Panel(timeline, _whole(timeline, width))], width)


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
    return _document([Panel(t, s) for t, s in zip(timelines, scales, strict=True)], width)


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
    drawn: list[str] = []
    y = 10.0
    for panel in panels:
        lines, y = panel.draw(y, width)
        drawn += lines
        y += 14
    height = round(y + KEY_HEIGHT)
    titles = "; ".join(panel.timeline.title for panel in panels)
    name = f"wft-{zlib.crc32(titles.encode()):x}"
    said = " ".join(panel.description() for panel in panels)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="wft" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-labelledby="{name}-t {name}-d">',
            f'<title id="{name}-t">Timeline. {escape(titles)}</title>',
            f'<desc id="{name}-d">{escape(said)}</desc>',
            f"<style>{STYLE}</style>",
            "<defs>",
            *(_pattern(kind, drawn_as) for kind, drawn_as in PATTERNS.items()),
            *(_head(kind, size) for kind, size in HEADS.items()),
            "</defs>",
            f'<rect class="bg" width="{width}" height="{height}"/>',
            *drawn,
            *_key(y, width),
            "</svg>\n",
        ]
    )


def _pattern(kind: str, inside: str) -> str:
    return f'<pattern id="wft-{kind}" width="6" height="6" patternUnits="userSpaceOnUse">{inside}</pattern>'


def _head(kind: str, size: int) -> str:
    """The head of an arrow."""
    box = f'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="{size}" markerHeight="{size}" orient="auto"'
    return f'<marker id="wft-{kind}" {box}><path class="{kind}head" d="M0 0 8 4 0 8z"/></marker>'


def _key(y: float, width: int) -> list[str]:
    """What the signs mean, in as many rows as it takes."""
    lines: list[str] = []
    x = float(LEFT)
    for kind, text in LEGEND:
        needed = 34 + text_width(text) + 18
        if x + needed > width - RIGHT:
            x, y = float(LEFT), y + ROW
        if kind in ("edge", "war", "order"):
            head = f' marker-end="url(#wft-{kind})"' if kind != "edge" else ""
            lines.append(f'<path class="{kind}" d="M{x:.1f} {y + 7:.1f}h26"{head}/>')
        else:
            lines.append(f'<rect class="s {kind}" x="{x:.1f}" y="{y:.1f}" width="26" height="14"/>')
            if kind in PATTERNS:
                lines.append(f'<rect x="{x:.1f}" y="{y + 7:.1f}" width="26" height="7" fill="url(#wft-{kind})"/>')
        lines.append(f'<text x="{x + 32:.1f}" y="{y + 11:.1f}">{text}</text>')
        x += needed
    return lines
