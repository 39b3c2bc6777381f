"""What a picture of a timeline consists of, in pixels: `panel` says where everything lies, `panel.svg.j2` draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warfence.show.timeline.labels import Label

LEFT, RIGHT = 84, 16  # beside the tracks
SLICE, STRIP = 30, 9  # heights: of a slice, and of the pattern at its foot


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a time lies: `zero` at pixel `x`, and how many pixels a microsecond has."""

    x: float
    zero: float
    pixels: float

    def at(self, time: float) -> float:
        return self.x + (time - self.zero) * self.pixels


@dataclass(frozen=True, slots=True)
class Box:
    """A slice. said: what it says when it is pointed at. pattern: whether it has one. name_x: None where it has no room."""

    kind: str
    x: float
    top: float
    width: float
    said: str
    name: str
    pattern: bool
    name_x: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """An arrow."""

    kind: str
    x1: float
    y1: float
    x2: float
    y2: float
    said: str


@dataclass(frozen=True, slots=True)
class Text:
    """A text that begins at x; of a slice's name with y, and the top of the slice, to which a line leads down."""

    x: float
    text: str
    y: float = 0.0
    top: float = 0.0


@dataclass(frozen=True, slots=True)
class Span:
    """What of the forward track is one launch's."""

    begin: float
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A panel. tracks: name -> top. boundaries: x of each. left_out: slices without room for their names."""

    title: str
    unit: str
    top: float
    bottom: float
    right: int
    tracks: Mapping[str, float]
    below_host: float
    below_forward: float
    boundaries: Sequence[float]
    boxes: Sequence[Box]
    arrows: Sequence[Line]
    boundary_names: Sequence[Label]
    labels: Sequence[Text]
    launches: Sequence[Span]
    ticks: Sequence[Text]
    left_out: int
    left: int = LEFT
    slice_height: int = SLICE
    strip_height: int = STRIP
