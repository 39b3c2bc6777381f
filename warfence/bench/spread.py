"""A measured number: the median of several measurements, with quartiles. Nothing is reported as one number alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles of what was measured, and the measurements in their order."""

    median: float
    low: float
    high: float
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """ValueError for no values at all. Quartiles are linear between neighbours, as numpy's."""
        raw = tuple(float(v) for v in values)
        if not raw:
            raise ValueError("a spread needs at least one value")
        ordered = sorted(raw)
        return cls(median(ordered), _at(ordered, 0.25), _at(ordered, 0.75), raw)

    def over(self, other: Spread) -> Spread:
        """Ratios, value by value: both were measured in the same rounds, so a drift of the machine cancels."""
        return Spread.of(a / b for a, b in zip(self.values, other.values, strict=True))


def _at(ordered: list[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
