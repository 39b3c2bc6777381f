"""What a user of the server would have waited: time to the first token, and from one token to the next, in host time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from warfence.core.modes import ForwardMode
from warfence.core.promises import Promises
from warfence.core.scheduler import Timing
from warfence.serve.requests import Request


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of waits in milliseconds, linear between neighbours."""

    p50: float
    p90: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Percentiles | None:
        """None where nobody waited."""
        if not seconds:
            return None
        p50, p90, p99 = (1e3 * float(value) for value in np.percentile(seconds, (50, 90, 99)))
        return cls(p50, p90, p99)


@dataclass(frozen=True, slots=True)
class Latency:
    """ttft_ms: from a request's arrival to the host's knowing its first token, queueing included. itl_ms: from one token of
    a request to its next; tokens that one verify brought came at once, so all of them but the first waited 0.

    None where no request had that many tokens.
    """

    ttft_ms: Percentiles | None
    itl_ms: Percentiles | None

    @classmethod
    def of(cls, requests: Iterable[Request]) -> Latency:
        """Of requests that were served: each noted when its tokens were heard of."""
        served = [r for r in requests if r.heard_s]
        first = [r.heard_s[0] - r.arrival_s for r in served]
        return cls(Percentiles.of(first), Percentiles.of([b - a for r in served for a, b in pairwise(r.heard_s)]))


NO_LATENCY = Latency(None, None)


def device_seconds(timing: Timing, promises: Promises) -> list[float | None]:
    """Seconds on the forward lane of each mode that was launched; None where the backend did not tell."""
    launched = {mode for step in timing.steps for _, mode in promises.phases(ForwardMode(step))}
    return [timing.device.get(mode.value) for mode in launched]


def occupancy(device_s: Iterable[float | None], seconds: float) -> float | None:
    """The share of `seconds` in which the forward lane ran launches; None where the backend cannot tell of some."""
    told = list(device_s)
    known = [s for s in told if s is not None]
    return sum(known) / seconds if known and len(known) == len(told) and seconds > 0 else None
