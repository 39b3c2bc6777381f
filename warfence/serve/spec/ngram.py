"""N-gram look-up: what followed the last time that the latest tokens stood together is proposed again.

It needs no draft: the token of each KV slot is noted, and the row's slots give the history. That look-up comes after the
verify, in the tail, because it needs the tokens just accepted. `ngram` looks the slots up in `req_to_token` again: a shared
read follows the verify, the algorithm promises nothing, and the barrier is coarse. `ngram-snapshot` takes the page table that
the verify has read already, so that its reads end with the verify's and the barrier is fine. (Public sources: sglang #35059,
which made n-grams wait coarsely, and #35198, which took that away on the same day.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from warfence.core.attention import AttentionBackend
from warfence.core.backend import ArraySpec
from warfence.core.batch import BatchLayout
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import ForwardProgram, Stage
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.weights import Weights
from warfence.serve.spec.draft import Draft
from warfence.serve.spec.stages import DRAFT_TOKENS, keep_drafts

BLOCK, GRAM = 6, 3  # tokens of a verify; the longest run of tokens that is looked up
HISTORY = "slot_tokens"


@dataclass(frozen=True, slots=True)
class Ngram:
    """Implements `warfence.serve.spec.Drafting`."""

    block: int
    rereads: bool = True
    proposals: bool = True

    @property
    def weights(self) -> Weights:
        return {}

    def state(self, rows: int, slots: int, queries: int) -> Mapping[str, ArraySpec]:
        return {HISTORY: ArraySpec((slots,)), DRAFT_TOKENS: ArraySpec((rows, self.block - 1))}

    def propose(self) -> tuple[Stage, ...]:
        return ()

    def after_layer(self, layer: int) -> tuple[Stage, ...]:
        return ()

    def after_choice(self, mode: ForwardMode) -> tuple[Stage, ...]:
        takes = ("tokens", "out_cache_loc")
        return (Stage("ngram_store", Region.REPLAY, "ngram_store", takes=takes, state=(HISTORY,)),)

    def tail(self, mode: ForwardMode) -> tuple[Stage, ...]:
        from warfence.core.program import page_table

        if mode not in (ForwardMode.TARGET_VERIFY, ForwardMode.EXTEND, ForwardMode.MIXED):
            return ()  # a fallback round must read nothing behind its boundary
        lookup = Stage(
            "ngram_lookup", Region.TAIL, "ngram_lookup", takes=("page_table", "req_pool_indices"), gives=("proposals",),
            state=("relay", "seq_lens", HISTORY), attrs={"gram": GRAM, "count": self.block - 1},
        )  # fmt: skip
        again = replace(page_table(), name="ngram_page_table", region=Region.TAIL)
        return (*((again,) if self.rereads else ()), lookup, keep_drafts())

    def draft_extend(self, attention: AttentionBackend, layout: BatchLayout, nth: int = 0) -> ForwardProgram:
        raise InputError("ngram has no draft extend: it looks up in the tail of the verify")


def ngram(config: ModelConfig, draft: Draft | None, block: int | None) -> Ngram:
    """Made for one model; needs no draft."""
    if draft is not None:
        raise InputError("n-grams take no draft; drop --draft")
    if block is not None and block < 2:
        raise InputError(f"--block is {block}; give at least 2: the known token and one proposal")
    return Ngram(block or BLOCK)


def ngram_snapshot(config: ModelConfig, draft: Draft | None, block: int | None) -> Ngram:
    """As `ngram`, with the look-up out of the verify's own page table."""
    return replace(ngram(config, draft, block), rereads=False)
