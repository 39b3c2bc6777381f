"""DFLASH: a drafter that fills a block of masks at once, over features that the target left of the tokens before."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float32, Int32

from warfence_jax.kernels.layers import beside_pool, context_of
from warfence_jax.kernels.shared import IN_BOUNDS, Attrs, Env, Kernel, rms_norm, rotate, turn


def draft_tap(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Add one target layer's part to the features."""
    part: Float32[Array, "b q d"] = env["hidden"] @ env[attrs["weight"]]
    return {"features": part if attrs["first"] else env["features"] + part}


def draft_context(env: Env, attrs: Attrs) -> dict[str, Array]:
    """Write the features of the new tokens into the pool of every draft layer, as its keys and values."""
    out: Int32[Array, "b q"] = env["out_cache_loc"]
    context = rms_norm(env["features"], env["dflash.context_norm"], attrs["eps"])
    angles = turn(env["positions"], attrs["rope"])
    shape = (*out.shape, attrs["kv_heads"], attrs["head_dim"])
    pools = {}
    for j, pool in enumerate(attrs["pools"]):
        key = rotate((context @ env[f"dflash.layer.{j}.wk"]).reshape(shape), *angles)
        value = (context @ env[f"dflash.layer.{j}.wv"]).reshape(shape)
        pools[pool] = env[pool].at[:, out].set(jnp.stack([key, value]), mode=IN_BOUNDS)
    return pools


def draft_block(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The block to fill: the token that is known, then masks."""
    tokens: Int32[Array, "b q"] = env["tokens"]
    mask: Float32[Array, " d"] = env["dflash.mask"]
    known = env["embed"].at[tokens[:, 0]].get(mode=IN_BOUNDS)
    return {"draft_hidden": jnp.broadcast_to(mask, (*tokens.shape, mask.size)).at[:, 0].set(known)}


def draft_layer(env: Env, attrs: Attrs) -> dict[str, Array]:
    """One draft layer over the row's context and the whole block, which is written nowhere."""
    kv, seen = context_of(env, attrs, env["prefix_lens"])
    hidden, _, _ = beside_pool(env, attrs, env["draft_hidden"], env["positions"], kv, seen)
    return {"draft_hidden": hidden, attrs["pool"]: env[attrs["pool"]]}


def draft_propose(env: Env, attrs: Attrs) -> dict[str, Array]:
    """The best token of each mask."""
    tokens: Int32[Array, "b q"] = env["tokens"]
    masks: Float32[Array, "b k d"] = env["draft_hidden"][:, 1:]
    best = jnp.argmax(rms_norm(masks, env["dflash.norm"], attrs["eps"]) @ env["head"], axis=-1)
    return {"tokens": tokens.at[:, 1:].set(best.astype(jnp.int32))}


KERNELS: dict[str, Kernel] = {
    "draft_tap": draft_tap,
    "draft_context": draft_context,
    "draft_block": draft_block,
    "draft_layer": draft_layer,
    "draft_propose": draft_propose,
}
