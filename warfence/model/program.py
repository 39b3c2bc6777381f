"""The decoder as a program: which stage reads which shared table, per attention backend, mode and bucket.

Tables: `req_to_token [rows, context]` (KV slot of each position of a request row) and `full_to_swa [1, slots]` (slot of
the sliding pool that holds the same token; 0 = evicted). Forward-private state: `kv.{i} [2, slots, kv_heads, head_dim]`
float32 and `relay [rows]` int32 (the token that each row sampled last).

Ops, for kernel writers (B rows, Q queries, C context, W window, S = W-1+Q, D hidden, V vocabulary):

| op | gives |
| --- | --- |
| stage_inputs | tokens [B,Q] (first token from the relay where from_relay), positions [B,Q] = prefix_lens + 0..Q-1 |
| page_table | page_table [B,C] = req_to_token[req_pool_indices] |
| swa_translate | swa_table [B,S]: sliding slots of positions from prefix_lens-(W-1) (0: none); swa_out_cache_loc |
| embed | hidden [B,Q,D] |
| layer | hidden [B,Q,D]; writes K and V of the new tokens at out_cache_loc (or swa_out_cache_loc), then attends |
| logits | logits [B,V] of the last new token of each row |
| sample | next_tokens [B], margin [B] (see warfence.sampling.choose) |
| relay | nothing; relay[req_pool_indices] = next_tokens |
| mix | mix [B] int32 = 31 * mix + the sum over the stage's tables of table[req_pool_indices, attrs["column"]]; starts from
|     | req_pool_indices where the stage takes no mix. Not part of a model: random programs are made of it |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from warfence.attention import AttentionBackend, MetadataPlace
from warfence.backend import ArraySpec
from warfence.batch import BatchLayout
from warfence.model.config import ModelConfig
from warfence.modes import ForwardMode, Region
from warfence.program import ForwardProgram, Stage

REQ_TO_TOKEN, FULL_TO_SWA = "req_to_token", "full_to_swa"
LOAD, REPLAY, TAIL = Region.LOAD_BATCH, Region.REPLAY, Region.TAIL
_LAYER_WEIGHTS = ("attn_norm", "wq", "wk", "wv", "wo", "mlp_norm", "w_gate", "w_up", "w_down")


def sliding_layers(config: ModelConfig) -> tuple[int, ...]:
    """Indices of the sliding-window layers."""
    return tuple(i for i, sliding in enumerate(config.sliding) if sliding)


def table_specs(config: ModelConfig, context: int, rows: int, slots: int) -> Mapping[str, ArraySpec]:
    """The shared tables for sequences of up to `context` tokens. `rows` and `slots` count the reserved index 0."""
    specs = {REQ_TO_TOKEN: ArraySpec((rows, context))}
    if any(config.sliding):
        specs[FULL_TO_SWA] = ArraySpec((1, slots))
    return specs


def state_specs(config: ModelConfig, rows: int, slots: int, swa_slots: int) -> Mapping[str, ArraySpec]:
    """The forward-private state: one KV pool a layer, sized by its kind, and the relay."""
    kv = {
        f"kv.{i}": ArraySpec((2, swa_slots if sliding else slots, config.kv_heads, config.head_dim), "float32")
        for i, sliding in enumerate(config.sliding)
    }
    return {**kv, "relay": ArraySpec((rows,))}


def build(
    config: ModelConfig, attention: AttentionBackend, mode: ForwardMode, layout: BatchLayout, *, sampled: bool
) -> ForwardProgram:
    """The program of one bucket. `sampled`: the sample stage honours temperature and top_p, else it is greedy."""
    load, replay = [_stage_inputs()], list[Stage]()
    full, sliding = attention.full.place, attention.sliding.place
    (load if full is MetadataPlace.LOAD_BATCH else replay).append(_page_table())
    if attention.sliding_layers and sliding is not MetadataPlace.EACH_LAYER:
        (load if sliding is MetadataPlace.LOAD_BATCH else replay).append(_swa_translate("swa_translate", config))
    replay.append(Stage("embed", REPLAY, "embed", takes=("tokens",), gives=("hidden",), params=("embed",)))
    for i in range(config.layers):
        if config.sliding[i] and sliding is MetadataPlace.EACH_LAYER:
            replay.append(_swa_translate(f"swa_translate.{i}", config))
        replay.append(_layer(config, i))
    replay += [
        Stage("logits", REPLAY, "logits", takes=("hidden", "extend_lens"), gives=("logits",), params=("norm", "head"),
              attrs={"eps": config.norm_eps}),
        Stage("sample", REPLAY, "sample", takes=("logits", "temperature", "top_p", "uniform"),
              gives=("next_tokens", "margin"), attrs={"sampled": sampled}),
    ]  # fmt: skip
    tail = Stage("relay", TAIL, "relay", takes=("next_tokens", "req_pool_indices"), state=("relay",))
    stages = (*(replace(s, region=LOAD) for s in load), *(replace(s, region=REPLAY) for s in replay), tail)
    name = f"{mode.value}/{attention.name}/{layout.rows}x{layout.queries}" + ("/sampled" if sampled else "")
    return ForwardProgram(name, mode, layout, stages, outputs=("next_tokens", "margin"))


def _stage_inputs() -> Stage:
    takes = ("input_ids", "from_relay", "req_pool_indices", "prefix_lens")
    return Stage("stage_inputs", LOAD, "stage_inputs", takes=takes, gives=("tokens", "positions"), state=("relay",))


def _page_table() -> Stage:
    return Stage(
        "page_table", LOAD, "page_table", reads=(REQ_TO_TOKEN,), takes=("req_pool_indices",), gives=("page_table",)
    )


def _swa_translate(name: str, config: ModelConfig) -> Stage:
    return Stage(
        name, LOAD, "swa_translate", reads=(REQ_TO_TOKEN, FULL_TO_SWA),
        takes=("req_pool_indices", "prefix_lens", "out_cache_loc"),
        gives=("swa_table", "swa_out_cache_loc"), attrs={"window": config.window},
    )  # fmt: skip


def _layer(config: ModelConfig, i: int) -> Stage:
    sliding = config.sliding[i]
    table = ("swa_table", "swa_out_cache_loc") if sliding else ("page_table", "out_cache_loc")
    return Stage(
        f"layer.{i}", REPLAY, "layer", takes=("hidden", "positions", "prefix_lens", *table), gives=("hidden",),
        state=(f"kv.{i}",), params=tuple(f"layer.{i}.{w}" for w in _LAYER_WEIGHTS),
        attrs={
            "weights": f"layer.{i}", "pool": f"kv.{i}", "window": config.window if sliding else None, "heads": config.heads,
            "kv_heads": config.kv_heads, "head_dim": config.head_dim, "theta": config.rope_theta,
            "eps": config.norm_eps,
        },
    )  # fmt: skip
