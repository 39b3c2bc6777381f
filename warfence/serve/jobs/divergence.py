"""Compares two runs of one workload: where each request first differs, and whether that was only a near tie."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from warfence.serve.requests import Request
from warfence.serve.sampling import NEAR_TIE


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first output position at which a request's tokens differ. A token is None where the output ended before.

    margin: of the choice in the run compared against; nan where that run made none there.
    """

    request: int
    position: int
    expected: int | None
    seen: int | None
    margin: float

    @property
    def near_tie(self) -> bool:
        """Whether rounding alone explains it. Everything after a near tie differs too, and rightly."""
        return self.margin < NEAR_TIE

    def to_json(self) -> dict[str, Any]:
        """The fields; no margin is null."""
        return asdict(self) | {"margin": None if math.isnan(self.margin) else self.margin}


def differences(seen: Sequence[Request], expected: Iterable[Request]) -> list[Divergence]:
    """The first difference of each request of `seen` against the request of the same id in `expected`, by id."""
    right = {request.id: request for request in expected}
    found = (_first(request, right[request.id]) for request in sorted(seen, key=lambda r: r.id))
    return [difference for difference in found if difference is not None]


def split(found: Iterable[Divergence]) -> tuple[list[Divergence], list[Divergence]]:
    """(real differences, near ties)."""
    listed = list(found)
    return [d for d in listed if not d.near_tie], [d for d in listed if d.near_tie]


def _first(seen: Request, expected: Request) -> Divergence | None:
    if seen.output == expected.output:
        return None
    pairs = zip(seen.output, expected.output, strict=False)
    shorter = min(len(seen.output), len(expected.output))
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), shorter)
    return Divergence(
        request=seen.id,
        position=at,
        expected=expected.output[at] if at < len(expected.output) else None,
        seen=seen.output[at] if at < len(seen.output) else None,
        margin=expected.margins[at] if at < len(expected.margins) else math.nan,
    )
