"""What an algorithm adds to the programs of a model. A program is data, so an algorithm is a few stages in a few places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from warfence.core.attention import AttentionBackend
from warfence.core.backend import ArraySpec
from warfence.core.batch import BatchLayout
from warfence.core.modes import ForwardMode
from warfence.core.program import ForwardProgram, Stage
from warfence.serve.model.weights import Weights

Stages = tuple[Stage, ...]


class Drafting(Protocol):
    """Made for one model and one block.

    block: tokens that a verify takes: the one that is known, and block - 1 proposals.
    proposals: whether these lie in the state `draft_tokens` when the verify is launched; else `propose` gives them.
    weights: the draft's own, by the names that its stages use.
    """

    @property
    def block(self) -> int: ...
    @property
    def proposals(self) -> bool: ...
    @property
    def weights(self) -> Weights: ...

    def state(self, rows: int, slots: int, queries: int) -> Mapping[str, ArraySpec]:
        """Forward-private state beside the model's. `queries`: the most new tokens of a row in any launch."""
        ...

    def propose(self) -> Stages:
        """Replay stages of a verify before the model runs, which give `tokens`."""
        ...

    def after_layer(self, layer: int) -> Stages:
        """Replay stages behind that layer of the model, in every mode."""
        ...

    def after_choice(self, mode: ForwardMode) -> Stages:
        """Replay stages behind the stage that chooses tokens."""
        ...

    def tail(self, mode: ForwardMode) -> Stages:
        """Tail stages behind the one that commits token and length."""
        ...

    def draft_extend(self, attention: AttentionBackend, layout: BatchLayout, nth: int = 0) -> ForwardProgram:
        """The program of the draft's own launch; nth: which of them, where a step has several. Only asked where it has any."""
        ...
