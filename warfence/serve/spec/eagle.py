"""EAGLE: a draft head that proposes one token after the other, in a launch of its own behind the verify.

The target leaves its last hidden states and the tokens that follow them; DRAFT_EXTEND, on the draft's runner, runs them
through one layer with a KV pool of its own, and goes on from its own output. It makes its own page table, so it reads
`req_to_token` once more: it is the last shared reader of the step, and its runner owns the mailbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from warfence.core.attention import AttentionBackend, MetadataPlace
from warfence.core.backend import ArraySpec
from warfence.core.batch import BatchLayout
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import ForwardProgram, Stage
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.weights import Weights, layer_weights
from warfence.serve.spec.draft import Draft
from warfence.serve.spec.stages import DRAFT_TOKENS, keep_drafts, sizes

REPLAY = Region.REPLAY
POOL, WEIGHTS = "draft_kv.0", "eagle.layer.0"
KEPT = ("eagle_hidden", "eagle_tokens", "eagle_lens")


@dataclass(frozen=True, slots=True)
class Eagle:
    """Implements `warfence.serve.spec.Drafting`."""

    config: ModelConfig
    draft: Draft
    block: int
    proposals: bool = True

    @property
    def weights(self) -> Weights:
        return self.draft.weights

    def state(self, rows: int, slots: int, queries: int) -> Mapping[str, ArraySpec]:
        c = self.config
        return {
            POOL: ArraySpec((2, slots, c.kv_heads, c.head_dim), "float32"),
            "eagle_hidden": ArraySpec((rows, queries, c.hidden), "float32"),
            "eagle_tokens": ArraySpec((rows, queries)),
            "eagle_lens": ArraySpec((rows, 2)),
            DRAFT_TOKENS: ArraySpec((rows, self.block - 1)),
        }

    def propose(self) -> tuple[Stage, ...]:
        return ()

    def after_layer(self, layer: int) -> tuple[Stage, ...]:
        return ()

    def after_choice(self, mode: ForwardMode) -> tuple[Stage, ...]:
        if mode not in (ForwardMode.TARGET_VERIFY, ForwardMode.EXTEND, ForwardMode.MIXED):
            return ()  # a fallback round has no draft extend, so nobody would take it
        verified = mode is ForwardMode.TARGET_VERIFY
        lens = "accept_lens" if verified else "extend_lens"
        takes = ("hidden", "tokens", "next_tokens", "req_pool_indices", "prefix_lens", lens)
        return (
            Stage(
                "eagle_keep", REPLAY, "eagle_keep", takes=takes, state=KEPT, attrs={"lens": lens, "verified": verified}
            ),
        )

    def tail(self, mode: ForwardMode) -> tuple[Stage, ...]:
        return ()

    def draft_extend(self, attention: AttentionBackend, layout: BatchLayout, nth: int = 0) -> ForwardProgram:
        """The draft's own launch, for batches of the layout of the launch before it."""
        from warfence.core.program import page_table, token_locs

        c, captured = self.config, attention.full.place is not MetadataPlace.LOAD_BATCH
        inputs = Stage(
            "eagle_inputs", Region.LOAD_BATCH, "eagle_inputs", takes=("req_pool_indices",),
            gives=("hidden", "positions", "prefix_lens", "extend_lens"), state=KEPT, params=("embed", "eagle.fc"),
            attrs={"queries": layout.queries},
        )  # fmt: skip
        metadata = (replace(page_table(), region=REPLAY if captured else Region.LOAD_BATCH), token_locs())
        layer = Stage(
            "draft_layer", REPLAY, "layer", takes=("hidden", "positions", "prefix_lens", "page_table", "out_cache_loc"),
            gives=("hidden",), state=(POOL,), params=layer_weights(WEIGHTS),
            attrs={"weights": WEIGHTS, "pool": POOL, "window": None, **sizes(c)},
        )  # fmt: skip
        propose = Stage(
            "eagle_propose", REPLAY, "eagle_propose", takes=("hidden", "extend_lens", "prefix_lens", "page_table"),
            gives=("proposals",), state=(POOL,), params=("embed", "head", "eagle.fc", "eagle.norm", *layer_weights(WEIGHTS)),
            attrs={"weights": WEIGHTS, "pool": POOL, "count": self.block - 1, **sizes(c)},
        )  # fmt: skip
        stages = (inputs, *metadata, layer, propose, keep_drafts())
        name = f"draft_extend/{attention.name}/{layout.rows}x{layout.queries}"
        breaks = ("draft_layer",) if attention.segmented else ()
        return ForwardProgram(name, ForwardMode.DRAFT_EXTEND, layout, stages, ("proposals",), breaks)


def eagle(config: ModelConfig, draft: Draft | None, block: int | None) -> Eagle:
    """Made for one model. The block may be any; the draft's own is the default."""
    assert draft is not None, "needs_draft"
    if block is not None and block < 2:
        raise InputError(f"--block is {block}; give at least 2: the known token and one proposal")
    return Eagle(config, draft, block or draft.block)
