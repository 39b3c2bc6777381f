"""The drawing of one timeline: a row for each track, the names of its slices, arrows across, a scale below."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from xml.sax.saxutils import escape

from warfence.show.timeline.labels import Label, place, width
from warfence.show.timeline.model import HOST, Slice, Timeline

LEFT, RIGHT = 84, 16  # pixels beside the tracks
HEAD, SLICE, STRIP, ROW, FOOT = 40, 30, 9, 13, 22  # heights: title, slice, pattern in it, row of names, below a track
NAME_ROWS = {HOST: 2}  # rows of names above a track; calls of the host are many and short
MOST_ROWS = 4
PLAIN = ("stage", "call")  # slices without a pattern


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a time lies: `zero` at pixel `x`, and how many pixels a microsecond has."""

    x: float
    zero: float
    pixels: float

    def at(self, time: float) -> float:
        return self.x + (time - self.zero) * self.pixels


class Panel:
    """One timeline on one scale."""

    def __init__(self, timeline: Timeline, scale: Scale) -> None:
        self.timeline, self.scale = timeline, scale

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

    def draw(self, y: float, total: int) -> tuple[list[str], float]:
        """(elements, where the panel ends), from y on, in a picture that is `total` pixels wide."""
        right = total - RIGHT
        names = {track: self._names(track, right) for track in self.timeline.tracks}
        tops: dict[str, float] = {}
        at = y + HEAD
        for track in self.timeline.tracks:
            labels, _ = names[track]
            at += ROW * (max((label.row for label in labels), default=-1) + 1) + 4
            tops[track] = at
            at += SLICE + FOOT
        bottom = at - FOOT + 6
        left_out = sum(n for _, n in names.values())
        lines = [f'<text class="h" x="{LEFT}" y="{y + 14:.1f}">{escape(self.timeline.title)}</text>']
        for track, top in tops.items():
            lines.append(f'<text x="8" y="{top + 19:.1f}">{track}</text>')
            lines.append(f'<path class="track" d="M{LEFT} {top + SLICE:.1f}H{right}"/>')
        below_host = tops.get(HOST, y + HEAD) + SLICE
        lines += self._lines(y + HEAD - 8, below_host, right)  # under the host's slices, which are long and named
        for track, top in tops.items():
            lines += [line for s in self._of(track) for line in self._slice(s, top, right)]
        lines += self._lines(below_host, bottom, right)
        lines += self._arrows(tops, right)
        lines += self._boundary_names(y + HEAD - 4, right)
        for track, top in tops.items():
            lines += [line for label in names[track][0] for line in _label(label, top)]
        lines += self._launches(tops.get("forward", bottom) + SLICE, right)
        lines += self._axis(bottom + 8, right, left_out)
        return lines, bottom + 36

    # -- parts

    def _of(self, track: str) -> list[Slice]:
        """In the order of drawing: what touches shared tables lies on top, however short it is."""
        of_track = (s for s in self.timeline.slices if s.track == track)
        return sorted(of_track, key=lambda s: (bool(s.reads or s.writes), s.begin))

    def _box(self, s: Slice, right: float) -> tuple[float, float]:
        """(x, width) of a slice, clipped to the tracks and never too thin to be seen."""
        left, right = self._limits(right)
        a, b = max(self.scale.at(s.begin), left), min(self.scale.at(s.end), right)
        w = max(b - a, 3.0 if s.reads or s.writes else 1.2)
        return (b - w if s.reads else a), w  # where reads end is the point of the picture

    def _limits(self, right: float) -> tuple[float, float]:
        """Between which pixels the timeline is shown."""
        begin, end = self.timeline.shown or (float("-inf"), float("inf"))
        return max(LEFT, self.scale.at(begin)), min(right, self.scale.at(end))

    def _seen(self, s: Slice, right: float) -> bool:
        left, right = self._limits(right)
        shown = self.scale.at(s.end) >= left and self.scale.at(s.begin) <= right
        return shown and (s.kind not in ("wait", "call") or s.end > s.begin)

    def _names(self, track: str, right: float) -> tuple[list[Label], int]:
        """Names that do not fit into their slices, those that touch shared tables first."""
        seen = [s for s in self._of(track) if self._seen(s, right) and not self._fits(s, right)]
        seen.sort(
            key=lambda s: (not (s.reads or s.writes), -s.begin)
        )  # from the right: lines lead down past what is there
        boxes = [self._box(s, right) for s in seen]
        wanted = [(x + w / 2, s.name) for (x, w), s in zip(boxes, seen, strict=True)]
        return place(wanted, NAME_ROWS.get(track, MOST_ROWS), right)

    def _fits(self, s: Slice, right: float) -> bool:
        return self._box(s, right)[1] >= width(s.name) + 8

    def _slice(self, s: Slice, top: float, right: float) -> list[str]:
        if not self._seen(s, right):
            return []
        x, w = self._box(s, right)
        kind = "reads" if s.reads else s.kind
        behind = "enqueued behind " if s.writes else ""
        launch = f", {behind}launch {s.launch}" if s.launch else ""
        stages = f" ({', '.join(s.stages)})" if len(s.stages) > 1 else ""
        marked = f"; {s.marked}" if s.marked else ""
        unit = "steps" if self.timeline.unit == "steps" else "µs"
        said = escape(f"{s.name}{stages}{launch}: {s.end - s.begin:.1f} {unit}{marked}")
        lines = [
            f'<g><title>{said}</title><rect class="s {kind}" x="{x:.1f}" y="{top}" width="{w:.1f}" height="{SLICE}"/>'
        ]
        if kind not in PLAIN:
            strip = f'x="{x:.1f}" y="{top + SLICE - STRIP}" width="{w:.1f}" height="{STRIP}"'
            lines.append(f'<rect {strip} fill="url(#wft-{kind})"/>')
        if self._fits(s, right):
            at = x + 4
            for line, _ in self._marks(right):  # a boundary that would go through the name
                if s.track != HOST and at - 4 < line < at + width(s.name) and line + 4 + width(s.name) < x + w:
                    at = line + 4
            lines.append(f'<text class="on" x="{at:.1f}" y="{top + 14}">{escape(s.name)}</text>')
        return [*lines, "</g>"]

    def _marks(self, right: float) -> list[tuple[float, str]]:
        marks = [(self.scale.at(m.time), f"{m.name} of launch {m.launch}") for m in self.timeline.marks]
        return [(x, text) for x, text in marks if LEFT <= x <= right]

    def _lines(self, top: float, bottom: float, right: float) -> list[str]:
        """A part of each read boundary."""
        return [f'<path class="edge" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>' for x, _ in self._marks(right)]

    def _boundary_names(self, y: float, right: float) -> list[str]:
        placed, _ = place([(x + 4, text) for x, text in self._marks(right)], 1, right)
        return [f'<text class="edgename halo" x="{one.x:.1f}" y="{y:.1f}">{escape(one.text)}</text>' for one in placed]

    def _arrows(self, tops: dict[str, float], right: float) -> list[str]:
        lines = []
        for arrow in sorted(self.timeline.arrows, key=lambda a: a.war):
            x1, x2 = self.scale.at(arrow.recorded), self.scale.at(arrow.went_on)
            if not all(LEFT <= x <= right for x in (x1, x2)):
                continue
            down = tops[arrow.target] > tops[arrow.source]
            y1 = tops[arrow.source] + (SLICE if down else 0)
            y2 = tops[arrow.target] + (0 if down else SLICE)
            kind = "war" if arrow.war else "order"
            said = f"<title>{escape(arrow.name)}: recorded, and {arrow.target} went on</title>"
            path = f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
            lines.append(f'<path class="{kind}" d="{path}" marker-end="url(#wft-{kind})">{said}</path>')
        return lines

    def _launches(self, y: float, right: float) -> list[str]:
        """Which launch a stretch of the forward track belongs to."""
        lines = []
        for launch in self.timeline.launches:
            a, b = (min(max(self.scale.at(t), LEFT), right) for t in self.timeline.span(launch, launch))
            texts = (f"launch {launch}: {self.timeline.mode(launch)}", str(launch))
            text = next((t for t in texts if width(t) < b - a), None)
            if text is not None:
                lines.append(f'<path class="lead" fill="none" d="M{a + 1:.1f} {y + 3:.1f}v4H{b - 1:.1f}v-4"/>')
                lines.append(
                    f'<text class="halo" x="{(a + b) / 2:.1f}" y="{y + 12:.1f}" text-anchor="middle">{text}</text>'
                )
        return lines

    def _axis(self, y: float, right: float, left_out: int) -> list[str]:
        """Ticks at round distances from the scale's zero, and what to say of the picture."""
        first, last = (self.scale.zero + (x - self.scale.x) / self.scale.pixels for x in (LEFT, right))
        step = _round((last - first) / 10)
        unit = "steps" if self.timeline.unit == "steps" else "µs"
        lines = [f'<path class="track" d="M{LEFT} {y:.1f}H{right}"/>']
        n = -floor((self.scale.zero - first) / step)
        while self.scale.zero + n * step <= last:
            x = self.scale.at(self.scale.zero + n * step)
            anchor = "end" if right - x < 30 else "middle"
            lines.append(f'<path class="track" d="M{x:.1f} {y:.1f}v4"/>')
            lines.append(
                f'<text class="soft" x="{x:.1f}" y="{y + 15:.1f}" text-anchor="{anchor}">{n * step:g}</text>'
            )  # fmt: skip
            n += 1
        lines.append(f'<text class="soft" x="8" y="{y + 15:.1f}">{unit}</text>')
        if left_out:
            said = f"{left_out} short slices without room for their names; point at one to read it"
            lines.append(f'<text class="soft" x="{right}" y="{y + 27:.1f}" text-anchor="end">{said}</text>')
        return lines


def _label(label: Label, top: float) -> list[str]:
    y = top - 4 - ROW * label.row
    return [
        f'<path class="lead" d="M{label.x:.1f} {y - 8:.1f}V{top}"/>',
        f'<text class="halo" x="{label.x + 2:.1f}" y="{y:.1f}">{escape(label.text)}</text>',
    ]


def _round(step: float) -> float:
    """The next of 1, 2, 5, 10, ... that is not below."""
    power = 10.0 ** floor(log10(max(step, 1e-6)))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= step)
