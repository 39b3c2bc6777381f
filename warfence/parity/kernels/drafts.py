"""Ops of the drafts in numpy: DFLASH (a block at once), EAGLE (one after the other), n-gram look-up."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Int32

from warfence.parity.kernels.shared import (
    Array,
    Attrs,
    Env,
    Kernel,
    attend,
    heads,
    mlp,
    query_key_value,
    rms_norm,
    rotate,
    steps,
    turn,
)  # fmt: skip


def draft_tap(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Add the projection of one target layer's output to the features."""
    tapped = env["hidden"] @ env[attrs["weight"]]
    return {"features": tapped if attrs["first"] else env["features"] + tapped}


def draft_context(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Keys and values of the new tokens in every draft layer, from the target's features."""
    size, out = attrs["head_dim"], env["out_cache_loc"]
    context = rms_norm(env["features"], env["dflash.context_norm"], attrs["eps"])
    angles = turn(env["positions"], attrs["rope"])
    for j, name in enumerate(attrs["pools"]):
        env[name][0][out] = rotate(heads(context @ env[f"dflash.layer.{j}.wk"], size), *angles)
        env[name][1][out] = heads(context @ env[f"dflash.layer.{j}.wv"], size)
    return {}


def draft_block(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The block before its first layer: the token that is known, then masks."""
    b, q = env["tokens"].shape
    block = np.broadcast_to(env["dflash.mask"], (b, q, env["dflash.mask"].size)).copy()
    block[:, 0] = env["embed"][env["tokens"][:, 0]]
    return {"draft_hidden": block}


def draft_layer(env: Env, attrs: Attrs) -> dict[str, Array]:
    """One draft layer: the block sees the context and all of itself."""
    hidden: Float32[np.ndarray, "b q d"] = env["draft_hidden"]
    b, q, _ = hidden.shape
    local = np.ones((b, q, q), bool)
    out, _, _ = _block_layer(env, attrs, hidden, env["positions"], env["prefix_lens"], local, None)
    return {"draft_hidden": out}


def _block_layer(
    env: Env, attrs: Attrs, hidden: Array, positions: Array, cached: Array, local: Array,
    before: tuple[Array, Array] | None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """A decoder layer over the pool's first `cached` positions and keys of its own, which are not written to the pool.

    before: own keys and values of earlier steps. local [b, q, own]: what of its own each query sees. Returns (out, keys,
    values), the own keys and values with those before.
    """
    w, eps = attrs["weights"], attrs["eps"]
    x = rms_norm(hidden, env[f"{w}.attn_norm"], eps)
    query, keys, values = query_key_value(env, attrs, x, positions)
    if before is not None:
        keys, values = np.concatenate([before[0], keys], axis=1), np.concatenate([before[1], values], axis=1)
    table: Int32[np.ndarray, "b c"] = env["page_table"]
    pool: Float32[np.ndarray, "2 slots kv size"] = env[attrs["pool"]]
    context = np.broadcast_to(
        (steps(0, table.shape[1]) < cached[:, None])[:, None], (*hidden.shape[:2], table.shape[1])
    )
    mixed = attend(
        query,
        np.concatenate([pool[0][table], keys], axis=1),
        np.concatenate([pool[1][table], values], axis=1),
        np.concatenate([context, local], axis=2),
    )
    hidden = hidden + mixed @ env[f"{w}.wo"]
    return hidden + mlp(env, w, rms_norm(hidden, env[f"{w}.mlp_norm"], eps)), keys, values


def draft_propose(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The block as tokens: the known one, then the likeliest of each row of the block."""
    scores = rms_norm(env["draft_hidden"], env["dflash.norm"], attrs["eps"]) @ env["head"]
    tokens = scores.argmax(-1).astype(np.int32)
    tokens[:, 0] = env["tokens"][:, 0]
    return {"tokens": tokens}


def eagle_keep(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Leave hidden states and the tokens that follow them for the draft's own launch."""
    rows, n, q = env["req_pool_indices"], env[attrs["lens"]], env["tokens"].shape[1]
    if attrs["verified"]:
        following = env["next_tokens"]
    else:
        following = np.pad(env["tokens"][:, 1:], ((0, 0), (0, 1)))
        following[np.arange(len(n)), n - 1] = env["next_tokens"]
    env["eagle_hidden"][rows, :q] = env["hidden"]
    env["eagle_tokens"][rows, :q] = following
    env["eagle_lens"][rows] = np.stack([env["prefix_lens"], n], axis=1)
    return {}


def eagle_inputs(env: Env, attrs: Attrs) -> dict[str, Array]:
    """What the draft layer takes: each hidden state with the token that follows it."""
    rows, q = env["req_pool_indices"], attrs["queries"]
    hidden = _joined(env, env["eagle_tokens"][rows, :q], env["eagle_hidden"][rows, :q])
    prefix, n = env["eagle_lens"][rows].T
    positions = prefix[:, None] + steps(0, q)
    return {"hidden": hidden, "positions": positions, "prefix_lens": prefix.copy(), "extend_lens": n.clip(1, q)}


def _joined(env: Env, tokens: Array, hidden: Array) -> Array:
    return np.asarray(np.concatenate([env["embed"][tokens], hidden], axis=-1) @ env["eagle.fc"])


def eagle_propose(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Proposals one after the other, each from the draft's own output before it."""
    n, b = env["extend_lens"], len(env["extend_lens"])
    out, cached = env["hidden"][np.arange(b), n - 1][:, None], env["prefix_lens"] + n
    proposals: list[Array] = []
    before: tuple[Array, Array] | None = None
    for k in range(attrs["count"]):
        scores = rms_norm(out, env["eagle.norm"], attrs["eps"]) @ env["head"]
        token = scores.argmax(-1).astype(np.int32)
        proposals.append(token)
        if k + 1 < attrs["count"]:
            local = np.ones((b, 1, k + 1), bool)
            step = (cached + k)[:, None]
            out, *own = _block_layer(env, attrs, _joined(env, token, out), step, cached, local, before)
            before = (own[0], own[1])
    return {"proposals": np.concatenate(proposals, axis=1)}


def ngram_store(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Note the token of each KV slot."""
    env["slot_tokens"][env["out_cache_loc"]] = env["tokens"]
    return {}


def ngram_lookup(env: Env, attrs: Attrs) -> dict[str, Array]:
    """What followed the last time that the row's latest tokens stood together."""
    rows, table, count = env["req_pool_indices"], env["page_table"], attrs["count"]
    b, c = table.shape
    length = np.minimum(env["seq_lens"][rows], c - 1)  # the last token's position
    history = env["slot_tokens"][table]
    history[np.arange(b), length] = env["relay"][rows]
    at, alike, run = steps(0, c), np.ones((b, c), bool), np.zeros((b, c), np.int32)
    for i in range(attrs["gram"]):
        wanted = np.take_along_axis(history, (length - i).clip(0)[:, None], axis=1)
        shifted = np.pad(history, ((0, 0), (i, 0)), constant_values=-1)[:, :c]
        alike &= (shifted == wanted) & (at >= i) & (at < length[:, None])
        run += alike
    best = (run * np.int32(c) + at).argmax(axis=1)  # the longest, and of those the latest
    found = run[np.arange(b), best] > 0
    following = best[:, None] + 1 + steps(0, count)
    used = found[:, None] & (following <= length[:, None])
    return {"proposals": np.where(used, np.take_along_axis(history, following.clip(0, c - 1), axis=1), np.int32(0))}


DRAFTS: dict[str, Kernel] = {
    f.__name__: f
    for f in (
        draft_tap, draft_context, draft_block, draft_layer, draft_propose, eagle_keep, eagle_inputs, eagle_propose,
        ngram_store, ngram_lookup,
    )
}  # fmt: skip
