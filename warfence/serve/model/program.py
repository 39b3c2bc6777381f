"""The decoder as a program: which stage reads which shared table, per attention backend, mode and bucket.

Tables: `req_to_token [rows, context]` (KV slot of each position of a request row) and `full_to_swa [1, slots]` (slot of
the sliding pool that holds the same token; 0 = evicted). Forward-private state: `kv.{i} [2, slots, kv_heads, head_dim]`
float32 and `relay [rows]` int32 (the token that each row sampled last); where a speculative algorithm runs also
`seq_lens [rows]` int32 (cached positions) and what the algorithm needs (`warfence.serve.spec`, which documents its own ops).

Ops, for kernel writers (B rows, Q queries, C context, W window, S = W-1+Q, D hidden, V vocabulary):

| op | gives |
| --- | --- |
| stage_inputs | tokens [B,Q] (first token from the relay where from_relay), positions [B,Q] = prefix_lens + 0..Q-1 |
| page_table | page_table [B,C] = req_to_token[req_pool_indices] |
| swa_translate | swa_table [B,S]: sliding slots of positions from prefix_lens-(W-1) (0: none); swa_out_cache_loc |
| copy_tables | each table of attrs["tables"], copied whole; later stages take the copies. For measuring (`warfence.bench`) |
| embed | hidden [B,Q,D] |
| layer | hidden [B,Q,D]; writes K and V of the new tokens at out_cache_loc (or swa_out_cache_loc), then attends |
| logits | logits [B,V] of the last new token of each row |
| sample | next_tokens [B], margin [B] (see warfence.serve.sampling.choose) |
| relay | nothing; relay[req_pool_indices] = next_tokens |
| resolve | tokens, positions, prefix_lens, uniform [B,Q] of rows whose length is in `seq_lens` and not known to the host |
| token_locs | out_cache_loc [B,Q] = page_table at the positions; 0 beyond extend_lens or the context |
| swa_page_table | swa_page_table [B,C] = full_to_swa[req_to_token[row]]: the whole row, whatever its length |
| swa_window | swa_table, swa_out_cache_loc out of swa_page_table |
| logits_all | logits [B,Q,V] of every new token |
| verify | next_tokens, margin [B,Q] chosen at each position; accept_lens [B] = 1 + leading proposals chosen; last_token [B] |
| commit | nothing; relay and seq_lens of the row = its last token, and its length |
| mix | mix [B] int32 = 31 * mix + the sum over the stage's tables of table[req_pool_indices, attrs["column"]]; starts from
|     | req_pool_indices where the stage takes no mix. Not part of a model: random programs are made of it |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from warfence.core.attention import AttentionBackend, MetadataPlace
from warfence.core.backend import ArraySpec
from warfence.core.batch import BatchLayout
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN, ForwardProgram, Stage, page_table, token_locs
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.drafting import Drafting
from warfence.serve.model.weights import layer_weights

LOAD, REPLAY, TAIL = Region.LOAD_BATCH, Region.REPLAY, Region.TAIL


def sliding_layers(config: ModelConfig) -> tuple[int, ...]:
    """Indices of the sliding-window layers."""
    return tuple(i for i, sliding in enumerate(config.sliding) if sliding)


def table_specs(config: ModelConfig, context: int, rows: int, slots: int) -> Mapping[str, ArraySpec]:
    """The shared tables for sequences of up to `context` tokens. `rows` and `slots` count the reserved index 0."""
    specs = {REQ_TO_TOKEN: ArraySpec((rows, context))}
    if any(config.sliding):
        specs[FULL_TO_SWA] = ArraySpec((1, slots))
    return specs


def state_specs(
    config: ModelConfig, rows: int, slots: int, swa_slots: int, drafting: Drafting | None = None, queries: int = 1
) -> Mapping[str, ArraySpec]:
    """The forward-private state: one KV pool a layer, sized by its kind, the relay, and what an algorithm needs.

    queries: the most new tokens of a row in any launch.
    """
    kv = {
        f"kv.{i}": ArraySpec((2, swa_slots if sliding else slots, config.kv_heads, config.head_dim), "float32")
        for i, sliding in enumerate(config.sliding)
    }
    plain = {**kv, "relay": ArraySpec((rows,))}
    if drafting is None:
        return plain
    return {**plain, "seq_lens": ArraySpec((rows,)), **drafting.state(rows, slots, queries)}


def build(
    config: ModelConfig, attention: AttentionBackend, mode: ForwardMode, layout: BatchLayout, *, sampled: bool,
    drafting: Drafting | None = None,
) -> ForwardProgram:  # fmt: skip
    """The program of one bucket. `sampled`: tokens are chosen by temperature and top_p, else greedily.

    drafting: what a speculative algorithm adds. With one, where a row stands is known to the device alone while a verify is
    in flight, so a decoding program resolves it there and finds its write locations in its own snapshot of the tables.
    """
    attention = attention.for_mode(mode)
    late = drafting is not None and mode in (ForwardMode.DECODE, ForwardMode.TARGET_VERIFY, ForwardMode.MIXED)
    verify = mode is ForwardMode.TARGET_VERIFY
    load, replay = [_resolve(drafting, verify) if late else _stage_inputs()], list[Stage]()
    full, sliding = attention.full.place, attention.sliding.place
    (load if full is MetadataPlace.LOAD_BATCH else replay).append(page_table())
    derived = [token_locs()] if late else []  # from the snapshot, so behind the last read: nobody has to wait for it
    if attention.sliding_layers and sliding is not MetadataPlace.EACH_LAYER:
        read, *window = _translate("", config, late)
        (load if sliding is MetadataPlace.LOAD_BATCH else replay).append(read)
        derived += window
    replay += derived
    if drafting is not None and verify:
        replay += drafting.propose()
    replay.append(Stage("embed", REPLAY, "embed", takes=("tokens",), gives=("hidden",), params=("embed",)))
    for i in range(config.layers):
        if config.sliding[i] and sliding is MetadataPlace.EACH_LAYER:
            replay += _translate(f".{i}", config, late)
        replay += [_layer(config, i), *(drafting.after_layer(i) if drafting is not None else ())]
    replay += _choose(config, sampled, verify)
    tail = [Stage("relay", TAIL, "relay", takes=("next_tokens", "req_pool_indices"), state=("relay",))]
    if drafting is not None:
        replay += drafting.after_choice(mode)
        tail = [_commit(verify), *drafting.tail(mode)]
    stages = (*(replace(s, region=LOAD) for s in load), *(replace(s, region=REPLAY) for s in replay), *tail)
    name = f"{mode.value}/{attention.name}/{layout.rows}x{layout.queries}" + ("/sampled" if sampled else "")
    outputs = ("next_tokens", "margin", "accept_lens") if verify else ("next_tokens", "margin")
    breaks = tuple(f"layer.{i}" for i in range(config.layers - 1)) if attention.segmented else ()
    return ForwardProgram(name, mode, layout, stages, outputs, breaks)


def _stage_inputs() -> Stage:
    takes = ("input_ids", "from_relay", "req_pool_indices", "prefix_lens")
    return Stage("stage_inputs", LOAD, "stage_inputs", takes=takes, gives=("tokens", "positions"), state=("relay",))


def _resolve(drafting: Drafting | None, verify: bool) -> Stage:
    proposals = verify and drafting is not None and drafting.proposals
    return Stage(
        "resolve", LOAD, "resolve", takes=("input_ids", "from_relay", "req_pool_indices", "prefix_lens", "uniform"),
        gives=("tokens", "positions", "prefix_lens", "uniform"),
        state=("relay", "seq_lens", "draft_tokens") if proposals else ("relay", "seq_lens"),
        attrs={"proposals": proposals},
    )  # fmt: skip


def _translate(suffix: str, config: ModelConfig, late: bool) -> list[Stage]:
    """The sliding metadata. A late program snapshots the whole row, so that no shared read depends on its length."""
    gives, attrs = ("swa_table", "swa_out_cache_loc"), {"window": config.window}
    name, reads = f"swa_translate{suffix}", (REQ_TO_TOKEN, FULL_TO_SWA)
    if not late:
        takes = ("req_pool_indices", "prefix_lens", "out_cache_loc")
        return [Stage(name, LOAD, "swa_translate", reads=reads, takes=takes, gives=gives, attrs=attrs)]
    window = ("swa_page_table", "prefix_lens", "positions", "extend_lens")
    return [
        Stage(name, LOAD, "swa_page_table", reads=reads, takes=("req_pool_indices",), gives=("swa_page_table",)),
        Stage(f"swa_window{suffix}", LOAD, "swa_window", takes=window, gives=gives, attrs=attrs),
    ]


def _layer(config: ModelConfig, i: int) -> Stage:
    sliding = config.sliding[i]
    table = ("swa_table", "swa_out_cache_loc") if sliding else ("page_table", "out_cache_loc")
    return Stage(
        f"layer.{i}", REPLAY, "layer", takes=("hidden", "positions", "prefix_lens", *table), gives=("hidden",),
        state=(f"kv.{i}",), params=(*layer_weights(f"layer.{i}"), *(f"layer.{i}.{w}" for w in config.extras)),
        attrs={
            "weights": f"layer.{i}", "pool": f"kv.{i}", "window": config.window if sliding else None,
            "heads": config.heads, "kv_heads": config.kv_heads, "head_dim": config.head_dim,
            "rope": config.rope, "eps": config.norm_eps,
        },
    )  # fmt: skip


def _choose(config: ModelConfig, sampled: bool, verify: bool) -> list[Stage]:
    """Logits and the choice of tokens: of the last position of a row, or, to verify, of each."""
    draws, attrs = ("temperature", "top_p", "uniform"), {"sampled": sampled}
    logits = Stage(
        "logits", REPLAY, "logits_all" if verify else "logits", takes=("hidden",) if verify else ("hidden", "extend_lens"),
        gives=("logits",), params=("norm", "head"), attrs={"eps": config.norm_eps},
    )  # fmt: skip
    if verify:
        gives = ("next_tokens", "margin", "accept_lens", "last_token")
        return [logits, Stage("verify", REPLAY, "verify", takes=("logits", "tokens", *draws), gives=gives, attrs=attrs)]
    sample = Stage("sample", REPLAY, "sample", takes=("logits", *draws), gives=("next_tokens", "margin"), attrs=attrs)
    return [logits, sample]


def _commit(verify: bool) -> Stage:
    token, lens = ("last_token", "accept_lens") if verify else ("next_tokens", "extend_lens")
    return Stage(
        "commit", TAIL, "commit", takes=(token, lens, "req_pool_indices", "prefix_lens"), state=("relay", "seq_lens"),
        attrs={"token": token, "lens": lens},
    )  # fmt: skip
