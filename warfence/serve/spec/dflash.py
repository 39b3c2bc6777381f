"""DFLASH: a draft that proposes a whole block in parallel, from the target's own features.

Block diffusion style: the block is the known token and masks, sees all cached positions and all of itself, and one pass
fills every mask. What it knows of the past are features of the target (some layers' outputs, projected), kept as keys and
values of its own at the target's slots. It runs inside the verify's own launch, from the snapshot that the target takes, so
it adds no shared read: target verify stays the last reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warfence.core.attention import AttentionBackend
from warfence.core.backend import ArraySpec
from warfence.core.batch import BatchLayout
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import ForwardProgram, Stage
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.weights import Weights, layer_weights
from warfence.serve.spec.draft import Draft
from warfence.serve.spec.stages import sizes

REPLAY = Region.REPLAY


@dataclass(frozen=True, slots=True)
class Dflash:
    """Implements `warfence.serve.spec.Drafting`."""

    config: ModelConfig
    draft: Draft
    block: int
    proposals: bool = False

    @property
    def weights(self) -> Weights:
        return self.draft.weights

    @property
    def pools(self) -> tuple[str, ...]:
        return tuple(f"draft_kv.{j}" for j in range(self.draft.layers))

    def state(self, rows: int, slots: int, queries: int) -> Mapping[str, ArraySpec]:
        shape = (2, slots, self.config.kv_heads, self.config.head_dim)
        return {pool: ArraySpec(shape, "float32") for pool in self.pools}

    def propose(self) -> tuple[Stage, ...]:
        takes = ("draft_hidden", "positions", "prefix_lens", "page_table")
        layers = (
            Stage(
                f"draft_layer.{j}", REPLAY, "draft_layer", takes=takes, gives=("draft_hidden",), state=(pool,),
                params=layer_weights(f"dflash.layer.{j}"),
                attrs={"weights": f"dflash.layer.{j}", "pool": pool, **sizes(self.config)},
            )
            for j, pool in enumerate(self.pools)
        )  # fmt: skip
        block = Stage(
            "draft_block", REPLAY, "draft_block", takes=("tokens",), gives=("draft_hidden",),
            params=("embed", "dflash.mask"),
        )  # fmt: skip
        fill = Stage(
            "draft_propose", REPLAY, "draft_propose", takes=("tokens", "draft_hidden"), gives=("tokens",),
            params=("dflash.norm", "head"), attrs={"eps": self.config.norm_eps},
        )  # fmt: skip
        return (block, *layers, fill)

    def after_layer(self, layer: int) -> tuple[Stage, ...]:
        if layer not in self.draft.taps:
            return ()
        first, weight = layer == min(self.draft.taps), f"dflash.tap.{layer}"
        takes = ("hidden",) if first else ("hidden", "features")
        attrs = {"weight": weight, "first": first}
        return (
            Stage(
                f"draft_tap.{layer}",
                REPLAY,
                "draft_tap",
                takes=takes,
                gives=("features",),
                params=(weight,),
                attrs=attrs,
            ),
        )

    def after_choice(self, mode: ForwardMode) -> tuple[Stage, ...]:
        params = [f"dflash.layer.{j}.{w}" for j in range(self.draft.layers) for w in ("wk", "wv")]
        return (
            Stage(
                "draft_context", REPLAY, "draft_context", takes=("features", "positions", "out_cache_loc"),
                state=self.pools, params=("dflash.context_norm", *params), attrs={"pools": self.pools, **sizes(self.config)},
            ),
        )  # fmt: skip

    def tail(self, mode: ForwardMode) -> tuple[Stage, ...]:
        return ()

    def draft_extend(self, attention: AttentionBackend, layout: BatchLayout, nth: int = 0) -> ForwardProgram:
        raise InputError("dflash has no draft extend: it proposes inside the verify")


def dflash(config: ModelConfig, draft: Draft | None, block: int | None) -> Dflash:
    """Made for one model. The block is the one that the draft was trained for."""
    assert draft is not None, "needs_draft"
    if block not in (None, draft.block):
        raise InputError(f"--block is {block}; this draft fills blocks of {draft.block}, for which it was trained")
    return Dflash(config, draft, draft.block)
