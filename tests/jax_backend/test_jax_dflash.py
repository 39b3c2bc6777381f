"""The ops of the block drafter, each against a loop over rows and tokens."""

from __future__ import annotations

import numpy as np
import pytest

from .loops import EPS, KV_HEADS, SIZE, SIZES, D, key_value, layer, layer_weights, norm, own
from .run_op import close, i32, normal, run

B, Q, C, SLOTS, V = 3, 4, 6, 25, 13
PREFIX = i32([0, 2, 5])
POSITIONS = PREFIX[:, None] + i32(range(Q))
TABLE = i32(np.random.default_rng(0).permutation(np.arange(1, SLOTS))[: B * C].reshape(B, C))


@pytest.mark.parametrize("first", [False, True])
def test_a_tap_adds_its_part_to_the_features(first: bool) -> None:
    hidden, weight, features = normal(1, B, Q, D), normal(2, D, D), normal(3, B, Q, D)
    known = {"hidden": hidden, "dflash.tap.2": weight} | ({} if first else {"features": features})
    given = run("draft_tap", known, ("features",), attrs={"weight": "dflash.tap.2", "first": first})["features"]
    for b in range(B):
        for q in range(Q):
            close(given[b, q], hidden[b, q] @ weight + (0 if first else features[b, q]))


def test_the_context_goes_into_the_pool_of_every_draft_layer() -> None:
    weights = {f"dflash.layer.{j}.{m}": normal(10 + 2 * j + i, D, KV_HEADS * SIZE)
               for j in range(2) for i, m in enumerate(("wk", "wv"))}  # fmt: skip
    features, weight = normal(3, B, Q, D), 1 + normal(4, D, scale=0.1)
    out = i32([[3, 4, 5, 6], [9, 1, 0, 0], [7, 0, 0, 0]])  # one row is full, the others end in places nobody reads
    pools = {f"draft_kv.{j}": normal(20 + j, 2, SLOTS, KV_HEADS, SIZE) for j in range(2)}
    known = {"features": features, "positions": POSITIONS, "out_cache_loc": out, "dflash.context_norm": weight,
             **weights, **pools}  # fmt: skip
    given = run("draft_context", known, state=tuple(pools), attrs={"pools": tuple(pools), **SIZES})
    for j, (name, pool) in enumerate(pools.items()):
        expected = pool.copy()
        for b in range(B):
            for q in range(Q):
                x = norm(features[b, q], weight)
                expected[:, out[b, q]] = key_value(weights, f"dflash.layer.{j}", x, POSITIONS[b, q])
        close(given[name][:, 1:], expected[:, 1:])


def test_the_block_is_the_known_token_and_masks() -> None:
    tokens, embed, mask = i32([[5, 1, 1, 1], [0, 2, 2, 2], [12, 3, 3, 3]]), normal(1, V, D), normal(2, D)
    known = {"tokens": tokens, "embed": embed, "dflash.mask": mask}
    given = run("draft_block", known, ("draft_hidden",))["draft_hidden"]
    for b in range(B):
        np.testing.assert_array_equal(given[b], [embed[tokens[b, 0]], mask, mask, mask])


@pytest.mark.slow
def test_a_draft_layer_sees_the_context_and_all_of_its_block_and_writes_nothing() -> None:
    name = "dflash.layer.1"
    weights = layer_weights(name, 30)
    hidden, pool = normal(1, B, Q, D), normal(2, 2, SLOTS, KV_HEADS, SIZE)
    known = {"draft_hidden": hidden, "positions": POSITIONS, "prefix_lens": PREFIX, "page_table": TABLE,
             "draft_kv.1": pool, **weights}  # fmt: skip
    attrs = {"weights": name, "pool": "draft_kv.1", **SIZES}
    given = run("draft_layer", known, ("draft_hidden",), state=("draft_kv.1",), attrs=attrs)
    np.testing.assert_array_equal(given["draft_kv.1"], pool)
    for b in range(B):
        context = [(pool[0, TABLE[b, p]], pool[1, TABLE[b, p]]) for p in range(PREFIX[b])]
        block = [own(weights, name, hidden[b, q], POSITIONS[b, q]) for q in range(Q)]
        for q in range(Q):
            expected = layer(weights, name, hidden[b, q], POSITIONS[b, q], [*context, *block])
            close(given["draft_hidden"][b, q], expected)


@pytest.mark.slow
def test_a_row_longer_than_its_table_sees_all_of_the_table() -> None:
    name = "dflash.layer.0"
    weights = layer_weights(name, 30)
    hidden, pool = normal(1, 1, 1, D), normal(2, 2, SLOTS, KV_HEADS, SIZE)
    known = {"draft_hidden": hidden, "positions": i32([[C + 2]]), "prefix_lens": i32([C + 2]), "page_table": TABLE[:1],
             "draft_kv.0": pool, **weights}  # fmt: skip
    attrs = {"weights": name, "pool": "draft_kv.0", **SIZES}
    given = run("draft_layer", known, ("draft_hidden",), state=("draft_kv.0",), attrs=attrs)["draft_hidden"]
    context = [(pool[0, slot], pool[1, slot]) for slot in TABLE[0]]
    seen = [*context, own(weights, name, hidden[0, 0], C + 2)]
    close(given[0, 0], layer(weights, name, hidden[0, 0], C + 2, seen))


def test_the_proposals_fill_all_but_the_known_token() -> None:
    tokens, hidden, weight, head = i32([[5, 0, 0, 0]] * B), normal(1, B, Q, D), 1 + normal(2, D), normal(3, D, V)
    known = {"tokens": tokens, "draft_hidden": hidden, "dflash.norm": weight, "head": head}
    given = run("draft_propose", known, ("tokens",), attrs={"eps": EPS})["tokens"]
    for b in range(B):
        best = [int(np.argmax(norm(hidden[b, q], weight) @ head)) for q in range(1, Q)]
        assert given[b].tolist() == [5, *best]
