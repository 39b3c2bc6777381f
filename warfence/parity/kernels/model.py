"""The ops of a decoder program in plain numpy: what a backend on the host needs.

Shapes: see `warfence.serve.model.program`. A kernel sees only what its stage declares. State (KV pools, the relay) is updated
in place; values are returned as fresh arrays, never as views of a table. Independent of `warfence.serve.model.reference`,
which has no pages: the two agree, or one of them is wrong.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Int32

from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.host.stage_calls import for_call
from warfence.parity.kernels.shared import (
    Array,
    Attrs,
    Env,
    Kernel,
    attend,
    choose_rows,
    linear,
    mlp,
    query_key_value,
    rms_norm,
    steps,
)  # fmt: skip


def stage_inputs(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Tokens, the first from the relay where the host does not know it yet, and positions."""
    tokens: Int32[np.ndarray, "b q"] = env["input_ids"].copy()
    relayed: Int32[np.ndarray, " b"] = env["relay"][env["req_pool_indices"]]
    tokens[:, 0] = np.where(env["from_relay"] > 0, relayed, tokens[:, 0])
    return {"tokens": tokens, "positions": env["prefix_lens"][:, None] + steps(0, tokens.shape[1])}


def page_table(env: Env, attrs: Attrs) -> dict[str, Array]:
    """KV slots of each request: the read of `req_to_token`."""
    return {"page_table": env[REQ_TO_TOKEN][env["req_pool_indices"]]}


def swa_translate(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Sliding slots of the window: the read of both tables."""
    req_to_token: Int32[np.ndarray, "rows c"] = env[REQ_TO_TOKEN]
    full_to_swa: Int32[np.ndarray, " slots"] = env[FULL_TO_SWA][0]
    out: Int32[np.ndarray, "b q"] = env["out_cache_loc"]
    position = env["prefix_lens"][:, None] + steps(1 - attrs["window"], out.shape[1])  # [b, s]
    column = position.clip(0, req_to_token.shape[1] - 1)
    slot = req_to_token[env["req_pool_indices"][:, None], column]
    table = np.where(position >= 0, full_to_swa[slot], np.int32(0))
    return {"swa_table": table, "swa_out_cache_loc": full_to_swa[out]}


def copy_tables(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Private copies of whole tables, under their names: what later stages take instead of reading (for measuring)."""
    return {name: env[name].copy() for name in attrs["tables"]}


def embed(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Token embeddings."""
    return {"hidden": env["embed"][env["tokens"]]}


def layer(env: Env, attrs: Attrs) -> dict[str, Array]:
    """One decoder layer: attention over the KV pool, then the MLP."""
    w = attrs["weights"]
    hidden = env["hidden"] + _attention(env, attrs, rms_norm(env["hidden"], env[f"{w}.attn_norm"], attrs["eps"]))
    return {"hidden": hidden + mlp(env, w, rms_norm(hidden, env[f"{w}.mlp_norm"], attrs["eps"]))}


def _attention(env: Env, attrs: Attrs, x: Array) -> Float32[np.ndarray, "b q d"]:
    """Write K and V of the new tokens into the pool, then attend over the table's slots."""
    w, window = attrs["weights"], attrs["window"]
    names = ("page_table", "out_cache_loc") if window is None else ("swa_table", "swa_out_cache_loc")
    table, locations = (env[name] for name in names)
    out = locations[:, : for_call(names[1], locations.shape[1], x.shape[1])]
    positions: Int32[np.ndarray, "b q"] = env["positions"]
    query, key, value = query_key_value(env, attrs, x, positions)
    pool: Float32[np.ndarray, "2 slots kv h"] = env[attrs["pool"]]
    pool[0][out] = key
    pool[1][out] = value

    columns = steps(0, table.shape[1])
    at = columns if window is None else env["prefix_lens"][:, None, None] + columns - (window - 1)
    seen = (at >= 0) & (at <= positions[:, :, None])
    if window is not None:
        seen &= at > positions[:, :, None] - window
    return linear(env, attend(query, pool[0][table], pool[1][table], seen), f"{w}.wo", f"{w}.bo")


def logits(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Logits of the last new token of each row."""
    hidden: Float32[np.ndarray, "b q d"] = env["hidden"]
    last = hidden[np.arange(hidden.shape[0]), env["extend_lens"] - 1]
    return {"logits": rms_norm(last, env["norm"], attrs["eps"]) @ env["head"]}


def sample(env: Env, attrs: Attrs) -> dict[str, Array]:
    """A token for each row; rows of temperature 0 are greedy."""
    temperature = env["temperature"] if attrs["sampled"] else None
    token, margin = choose_rows(env["logits"], temperature, env["top_p"], env["uniform"][:, 0])
    return {"next_tokens": token, "margin": margin}


def relay(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Leave each row's token on the device for the next launch."""
    env["relay"][env["req_pool_indices"]] = env["next_tokens"]
    return {}


def mix(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The op of random programs: see `warfence.serve.model.program`."""
    rows: Int32[np.ndarray, " b"] = env["req_pool_indices"]
    value = 31 * env["mix"] if "mix" in env else rows.copy()
    for name in attrs["tables"]:
        value = value + env[name][rows, attrs["column"]]
    return {"mix": value}


MODEL: dict[str, Kernel] = {
    f.__name__: f
    for f in (stage_inputs, page_table, swa_translate, copy_tables, embed, layer, logits, sample, relay, mix)
}
