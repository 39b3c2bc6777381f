"""EAGLE: a drafter of one layer that goes on from the target's own hidden states, one token after the other."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float32, Int32

from warfence_jax.kernels.layers import beside_pool, context_of
from warfence_jax.kernels.shared import IN_BOUNDS, Attrs, Env, Kernel, rms_norm

STATE = ("eagle_hidden", "eagle_tokens", "eagle_lens")


def eagle_keep(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Leave each row's hidden states for the drafter, beside the token that follows each of them."""
    tokens: Int32[Array, "b q"] = env["tokens"]
    rows: Int32[Array, " b"] = env["req_pool_indices"]
    lens: Int32[Array, " b"] = env[attrs["lens"]]
    b, q = tokens.shape
    if attrs["verified"]:
        following = env["next_tokens"]
    else:
        following = jnp.pad(tokens[:, 1:], ((0, 0), (0, 1)))
        following = following.at[jnp.arange(b), lens - 1].set(env["next_tokens"], mode=IN_BOUNDS)
    span = jnp.stack([env["prefix_lens"], lens], axis=1)
    return {
        "eagle_hidden": env["eagle_hidden"].at[rows, :q].set(env["hidden"], mode=IN_BOUNDS),
        "eagle_tokens": env["eagle_tokens"].at[rows, :q].set(following, mode=IN_BOUNDS),
        "eagle_lens": env["eagle_lens"].at[rows].set(span, mode=IN_BOUNDS),
    }


def eagle_inputs(env: Env, attrs: Attrs) -> dict[str, Array]:
    """What was kept of each row, as the input of the draft layer, and where it stands."""
    queries = attrs["queries"]
    hidden, tokens, span = (env[n].at[env["req_pool_indices"]].get(mode=IN_BOUNDS) for n in STATE)
    prefix_lens: Int32[Array, " b"] = span[:, 0]
    return {
        "hidden": _joined(env, tokens[:, :queries], hidden[:, :queries]),
        "positions": prefix_lens[:, None] + jnp.arange(queries, dtype=jnp.int32),
        "prefix_lens": prefix_lens,
        "extend_lens": jnp.clip(span[:, 1], 1, queries),
        **{n: env[n] for n in STATE},
    }


def eagle_propose(env: Env, attrs: Attrs) -> dict[str, Array]:
    """One token after the other: each step goes on from the output of the one before, over the pool and those steps."""
    hidden: Float32[Array, "b q d"] = env["hidden"]
    lens: Int32[Array, " b"] = env["extend_lens"]
    output: Float32[Array, "b d"] = hidden.at[jnp.arange(hidden.shape[0]), lens - 1].get(mode=IN_BOUNDS)
    position: Int32[Array, " b"] = env["prefix_lens"] + lens
    kv, seen = context_of(env, attrs, position)
    proposals = [_best(env, attrs, output)]
    for step in range(attrs["count"] - 1):
        joined = _joined(env, proposals[-1], output)[:, None]
        stream, kv, seen = beside_pool(env, attrs, joined, position[:, None] + step, kv, seen)
        output = stream[:, 0]
        proposals.append(_best(env, attrs, output))
    return {"proposals": jnp.stack(proposals, axis=1), attrs["pool"]: env[attrs["pool"]]}


def _joined(env: Env, tokens: Int32[Array, "*n"], hidden: Float32[Array, "*n d"]) -> Float32[Array, "*n d"]:
    """The input of the draft layer: a hidden state and the token that follows it."""
    following = env["embed"].at[tokens].get(mode=IN_BOUNDS)
    return jnp.concatenate([following, hidden], axis=-1) @ env["eagle.fc"]


def _best(env: Env, attrs: Attrs, output: Float32[Array, "b d"]) -> Int32[Array, " b"]:
    scores = rms_norm(output, env["eagle.norm"], attrs["eps"]) @ env["head"]
    return jnp.argmax(scores, axis=-1).astype(jnp.int32)


def keep_drafts(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Leave the proposals of each row for its next launch."""
    proposals: Int32[Array, "b k"] = env["proposals"]
    rows: Int32[Array, " b"] = env["req_pool_indices"]
    return {"draft_tokens": env["draft_tokens"].at[rows, : proposals.shape[1]].set(proposals, mode=IN_BOUNDS)}


KERNELS: dict[str, Kernel] = {
    "eagle_keep": eagle_keep,
    "eagle_inputs": eagle_inputs,
    "eagle_propose": eagle_propose,
    "keep_drafts": keep_drafts,
}
