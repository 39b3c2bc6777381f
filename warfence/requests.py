"""A request, from arrival to its last token."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from warfence.sampling import SamplingParams


class Phase(Enum):
    """Where a request stands."""

    WAITING = "waiting"  # no row yet, or retracted
    PREFILL = "prefill"  # has a row; some of its known tokens are not in the cache yet
    DECODE = "decode"
    DONE = "done"


@dataclass(slots=True, eq=False)
class Request:
    """Host-side state. The device may be one step ahead of `output`: `launched` counts what was asked of it.

    arrival_s: seconds after the start at which the request exists. stop_at_eos: end when an end-of-text token comes.
    """

    id: int
    prompt: tuple[int, ...]
    max_new_tokens: int
    params: SamplingParams = SamplingParams()
    arrival_s: float = 0.0
    stop_at_eos: bool = True

    output: list[int] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    phase: Phase = Phase.WAITING
    row: int = 0
    slots: list[int] = field(default_factory=list)  # full KV slot of each cached position
    swa: dict[int, int] = field(default_factory=dict)  # position -> sliding slot, only what was not evicted
    launched: int = 0  # output tokens asked of the device so far, known or in flight
    stopped: bool = False  # an end-of-text token came; what is still in flight is surplus
    retractions: int = 0
    chunks: int = 0

    @property
    def cached(self) -> int:
        """Positions whose KV is in the cache or on its way there."""
        return len(self.slots)

    @property
    def in_flight(self) -> int:
        """Output tokens that the host does not know yet."""
        return self.launched - len(self.output)

    @property
    def known(self) -> tuple[int, ...]:
        """All tokens that the host knows."""
        return (*self.prompt, *self.output)

    @property
    def total_launched(self) -> int:
        """Length of the sequence once everything in flight has arrived."""
        return len(self.prompt) + self.launched
