"""A request, from arrival to its last token."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from warfence.serve.sampling import SamplingParams


class Phase(Enum):
    """Where a request stands."""

    WAITING = "waiting"  # no row yet, or retracted
    PREFILL = "prefill"  # has a row; some of its known tokens are not in the cache yet
    DECODE = "decode"
    DONE = "done"


@dataclass(slots=True, eq=False)
class Request:
    """Host-side state. The device may be one step ahead of `output`: `flying` launches have given it no token yet.

    arrival_s: seconds after the start at which the request exists. stop_at_eos: end when an end-of-text token comes.
    needs_token: the host has to know its last token before its next step is issued, as a grammar does.
    """

    id: int
    prompt: tuple[int, ...]
    max_new_tokens: int
    params: SamplingParams = SamplingParams()
    arrival_s: float = 0.0
    stop_at_eos: bool = True
    needs_token: bool = False

    output: list[int] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    heard_s: list[float] = field(default_factory=list)  # when the host knew each output token; seconds as in arrival_s
    phase: Phase = Phase.WAITING
    row: int = 0
    slots: list[int] = field(default_factory=list)  # full KV slot of each position that has one
    swa: dict[int, int] = field(default_factory=dict)  # position -> sliding slot, only what was not evicted
    cached: int = 0  # positions whose KV is in the cache or on its way there: the least that it can be
    slack: int = 0  # how many more it may be, because a verify in flight may accept that many proposals
    flying: int = 0  # launches whose tokens the host does not know yet
    stopped: bool = False  # its last token is known; what is still in flight is surplus
    retractions: int = 0
    chunks: int = 0

    @property
    def known(self) -> tuple[int, ...]:
        """All tokens that the host knows."""
        return (*self.prompt, *self.output)

    @property
    def launched(self) -> int:
        """Output tokens asked of the device so far, known or in flight: each launch brings at least one."""
        return len(self.output) + self.flying

    def learn(self, count: int, block: int = 1) -> None:
        """One launch in flight brought `count` tokens of at most `block`, which the caller appends to `output`."""
        self.flying -= 1
        if self.row:  # neither ended nor retracted since: its positions still count
            self.cached += count - 1
            self.slack -= block - 1

    def is_full(self, context: int) -> bool:
        """Whether no further token is asked for, or would fit."""
        return self.launched >= self.max_new_tokens or len(self.prompt) + self.launched >= context

    def stop(self) -> None:
        """Its last token is known."""
        self.stopped, self.flying = True, 0
