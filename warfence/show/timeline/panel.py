"""Where everything of one timeline lies in the picture; the template `panel.svg.j2` draws it.

A row for each track, the names of its slices, arrows across, a scale below. All numbers are pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import floor, log10

from warfence.show.timeline.labels import Label, place, width
from warfence.show.timeline.model import HOST, Slice, Timeline
from warfence.show.timeline.shapes import LEFT, RIGHT, SLICE, Box, Drawn, Line, Scale, Span, Text

HEAD, ROW, FOOT = 40, 13, 22  # heights: title, row of names, below a track
NAME_ROWS = {HOST: 2}  # rows of names above a track; calls of the host are many and short
MOST_ROWS = 4
PLAIN = ("stage", "call")  # slices without a pattern


class Panel:
    """One timeline on one scale, in a picture that is `total` pixels wide."""

    def __init__(self, timeline: Timeline, scale: Scale, total: int) -> None:
        self.timeline, self.scale, self.right = timeline, scale, total - RIGHT
        begin, end = timeline.shown or (float("-inf"), float("inf"))
        self._limits = max(LEFT, scale.at(begin)), min(self.right, scale.at(end))  # between which it is shown
        marks = [(scale.at(m.time), f"{m.name} of launch {m.launch}") for m in timeline.marks]
        self._marks = [(x, text) for x, text in marks if LEFT <= x <= self.right]
        self._unit = "steps" if timeline.unit == "steps" else "µs"

    def description(self) -> str:
        """The picture in sentences."""
        marks = {m.launch: m.time for m in self.timeline.marks}
        told = [f"{self.timeline.title}: tracks {', '.join(self.timeline.tracks)}."]
        unit = "steps" if self.timeline.unit == "steps" else "microseconds"
        for launch, at in sorted(marks.items()):
            over = self.timeline.span(launch, launch)[1]
            told.append(f"Launch {launch} reads shared tables for the last time {over - at:.0f} {unit} before its end.")
        for arrow in self.timeline.arrows:
            if arrow.war:
                wait = arrow.went_on - arrow.recorded
                told.append(f"{arrow.target} went on {wait:.0f} {unit} after {arrow.name} was recorded.")
        return " ".join(told)

    def draw(self, y: float) -> tuple[Drawn, float]:
        """(what is drawn, where the panel ends), from y on."""
        names = {track: self._names(track) for track in self.timeline.tracks}
        tops: dict[str, float] = {}
        at = y + HEAD
        for track in self.timeline.tracks:
            at += ROW * (max((label.row for label in names[track][0]), default=-1) + 1) + 4
            tops[track] = at
            at += SLICE + FOOT
        bottom = at - FOOT + 6
        drawn = Drawn(
            self.timeline.title, self._unit, y, bottom, self.right, tops,
            below_host=tops.get(HOST, y + HEAD) + SLICE,  # the host's slices are long and named: boundaries lie under them
            below_forward=tops.get("forward", bottom) + SLICE,
            boundaries=[x for x, _ in self._marks],
            boxes=[self._box(s, top) for track, top in tops.items() for s in self._of(track) if self._seen(s)],
            arrows=[*self._arrows(tops)],
            boundary_names=place([(x + 4, text) for x, text in self._marks], 1, self.right)[0],
            labels=[
                Text(one.x, one.text, top - 4 - ROW * one.row, top)
                for track, top in tops.items() for one in names[track][0]
            ],
            launches=[*self._launches()],
            ticks=[*self._ticks()],
            left_out=sum(n for _, n in names.values()),
        )  # fmt: skip
        return drawn, bottom + 36

    # -- parts

    def _of(self, track: str) -> list[Slice]:
        """In the order of drawing: what touches shared tables lies on top, however short it is."""
        of_track = (s for s in self.timeline.slices if s.track == track)
        return sorted(of_track, key=lambda s: (bool(s.reads or s.writes), s.begin))

    def _place(self, s: Slice) -> tuple[float, float]:
        """(x, width) of a slice, clipped to the tracks and never too thin to be seen."""
        left, right = self._limits
        a, b = max(self.scale.at(s.begin), left), min(self.scale.at(s.end), right)
        w = max(b - a, 3.0 if s.reads or s.writes else 1.2)
        return (b - w if s.reads else a), w  # where reads end is the point of the picture

    def _seen(self, s: Slice) -> bool:
        left, right = self._limits
        shown = self.scale.at(s.end) >= left and self.scale.at(s.begin) <= right
        return shown and (s.kind not in ("wait", "call") or s.end > s.begin)

    def _names(self, track: str) -> tuple[list[Label], int]:
        """Names that do not fit into their slices, those that touch shared tables first."""
        seen = [s for s in self._of(track) if self._seen(s) and not self._fits(s)]
        # From the right: lines lead down past what is there.
        seen.sort(key=lambda s: (not (s.reads or s.writes), -s.begin))
        places = [self._place(s) for s in seen]
        wanted = [(x + w / 2, s.name) for (x, w), s in zip(places, seen, strict=True)]
        return place(wanted, NAME_ROWS.get(track, MOST_ROWS), self.right)

    def _fits(self, s: Slice) -> bool:
        return self._place(s)[1] >= width(s.name) + 8

    def _box(self, s: Slice, top: float) -> Box:
        x, w = self._place(s)
        kind = "reads" if s.reads else s.kind
        behind = "enqueued behind " if s.writes else ""
        launch = f", {behind}launch {s.launch}" if s.launch else ""
        stages = f" ({', '.join(s.stages)})" if len(s.stages) > 1 else ""
        marked = f"; {s.marked}" if s.marked else ""
        said = f"{s.name}{stages}{launch}: {s.end - s.begin:.1f} {self._unit}{marked}"
        name_x = self._name_at(s, x, w) if self._fits(s) else None
        return Box(kind, x, top, w, said, s.name, kind not in PLAIN, name_x)

    def _name_at(self, s: Slice, x: float, w: float) -> float:
        """Where a name stands in its slice: beside a boundary that would go through it."""
        at = x + 4
        for line, _ in self._marks:
            if s.track != HOST and at - 4 < line < at + width(s.name) and line + 4 + width(s.name) < x + w:
                at = line + 4
        return at

    def _arrows(self, tops: Mapping[str, float]) -> Iterator[Line]:
        for arrow in sorted(self.timeline.arrows, key=lambda a: a.war):
            x1, x2 = self.scale.at(arrow.recorded), self.scale.at(arrow.went_on)
            if all(LEFT <= x <= self.right for x in (x1, x2)):
                down = tops[arrow.target] > tops[arrow.source]
                y1 = tops[arrow.source] + (SLICE if down else 0)
                y2 = tops[arrow.target] + (0 if down else SLICE)
                said = f"{arrow.name}: recorded, and {arrow.target} went on"
                yield Line("war" if arrow.war else "order", x1, y1, x2, y2, said)

    def _launches(self) -> Iterator[Span]:
        """Those whose text has room."""
        for launch in self.timeline.launches:
            a, b = (min(max(self.scale.at(t), LEFT), self.right) for t in self.timeline.span(launch, launch))
            texts = (f"launch {launch}: {self.timeline.mode(launch)}", str(launch))
            text = next((t for t in texts if width(t) < b - a), None)
            if text is not None:
                yield Span(a, b, text)

    def _ticks(self) -> Iterator[Text]:
        """At round distances from the scale's zero."""
        scale = self.scale
        first, last = (scale.zero + (x - scale.x) / scale.pixels for x in (LEFT, self.right))
        step = _round((last - first) / 10)
        n = -floor((scale.zero - first) / step)
        while scale.zero + n * step <= last:
            yield Text(scale.at(scale.zero + n * step), f"{n * step:g}")
            n += 1


def _round(step: float) -> float:
    """The next of 1, 2, 5, 10, ... that is not below."""
    power = 10.0 ** floor(log10(max(step, 1e-6)))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= step)
