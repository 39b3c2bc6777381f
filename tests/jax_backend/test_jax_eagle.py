"""The ops of the drafter that goes on from hidden states, each against a loop over rows and steps."""

from __future__ import annotations

import numpy as np
import pytest

from .loops import KV_HEADS, SIZE, SIZES, D, layer, layer_weights, norm, own
from .run_op import close, i32, normal, run

B, Q, M, C, SLOTS, V = 3, 4, 6, 9, 30, 13
ROWS = i32([2, 4, 1])
STATE = ("eagle_hidden", "eagle_tokens", "eagle_lens")


@pytest.mark.parametrize("verified", [False, True])
def test_keep_leaves_hidden_states_beside_the_tokens_that_follow_them(verified: bool) -> None:
    rng = np.random.default_rng(0)
    hidden, tokens, lens, prefix = normal(1, B, Q, D), i32(rng.integers(1, 50, (B, Q))), i32([4, 1, 3]), i32([0, 5, 7])
    following = i32(rng.integers(50, 99, (B, Q) if verified else (B,)))
    name = "accept_lens" if verified else "extend_lens"
    kept = {"eagle_hidden": normal(2, 5, M, D), "eagle_tokens": i32(rng.integers(1, 9, (5, M))),
            "eagle_lens": i32(rng.integers(1, 9, (5, 2)))}  # fmt: skip
    known = {"hidden": hidden, "tokens": tokens, "next_tokens": following, "req_pool_indices": ROWS,
             "prefix_lens": prefix, name: lens, **kept}  # fmt: skip
    given = run("eagle_keep", known, state=STATE, attrs={"lens": name, "verified": verified})
    expected = {n: a.copy() for n, a in kept.items()}
    for b, row in enumerate(ROWS):
        expected["eagle_hidden"][row, :Q] = hidden[b]
        if verified:
            shifted = following[b].tolist()
        else:
            shifted = [*tokens[b, 1:].tolist(), 0]
            shifted[lens[b] - 1] = following[b]
        expected["eagle_tokens"][row, :Q] = shifted
        expected["eagle_lens"][row] = prefix[b], lens[b]
    for state in STATE:
        np.testing.assert_array_equal(given[state], expected[state], err_msg=state)


def test_inputs_join_what_was_kept_and_say_where_it_stands() -> None:
    rng = np.random.default_rng(3)
    lens = i32([[0, 0], [3, 2], [7, 0], [1, 1], [2, 6]])  # a row that was never kept, and one kept for more queries
    kept = {"eagle_hidden": normal(4, 5, M, D), "eagle_tokens": i32(rng.integers(0, V, (5, M))), "eagle_lens": lens}
    embed, fc = normal(5, V, D), normal(6, 2 * D, D)
    known = {"req_pool_indices": ROWS, "embed": embed, "eagle.fc": fc, **kept}
    gives = ("hidden", "positions", "prefix_lens", "extend_lens")
    given = run("eagle_inputs", known, gives, state=STATE, attrs={"queries": Q})
    for b, row in enumerate(ROWS):
        for q in range(Q):
            joined = np.concatenate([embed[kept["eagle_tokens"][row, q]], kept["eagle_hidden"][row, q]])
            close(given["hidden"][b, q], joined @ fc)
        assert given["positions"][b].tolist() == [lens[row, 0] + q for q in range(Q)]
    assert given["prefix_lens"].tolist() == [7, 2, 3]
    assert given["extend_lens"].tolist() == [1, Q, 2]
    for state in STATE:
        np.testing.assert_array_equal(given[state], kept[state])


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 4])
def test_propose_goes_on_from_its_own_output(count: int) -> None:
    name = "eagle.layer.0"
    weights = layer_weights(name, 40)
    embed, fc = normal(5, V, D), normal(6, 2 * D, D, scale=0.3)
    head, weight = normal(7, D, V), 1 + normal(8, D, scale=0.1)
    hidden, pool = normal(9, B, Q, D), normal(10, 2, SLOTS, KV_HEADS, SIZE)
    table = i32(np.random.default_rng(1).permutation(np.arange(1, SLOTS))[: B * C].reshape(B, C))
    lens, prefix = i32([1, 4, 2]), i32([0, 3, 8])  # the last row reaches past the context
    known = {"hidden": hidden, "extend_lens": lens, "prefix_lens": prefix, "page_table": table, "draft_kv.0": pool,
             "embed": embed, "head": head, "eagle.fc": fc, "eagle.norm": weight, **weights}  # fmt: skip
    attrs = {"weights": name, "pool": "draft_kv.0", "count": count, **SIZES}
    given = run("eagle_propose", known, ("proposals",), state=("draft_kv.0",), attrs=attrs)
    np.testing.assert_array_equal(given["draft_kv.0"], pool)
    for b in range(B):
        position, output = prefix[b] + lens[b], hidden[b, lens[b] - 1]
        seen = [(pool[0, table[b, p]], pool[1, table[b, p]]) for p in range(min(position, C))]
        expected = []
        for k in range(count):
            expected.append(int(np.argmax(norm(output, weight) @ head)))
            joined = np.concatenate([embed[expected[-1]], output]) @ fc
            seen.append(own(weights, name, joined, position + k))
            output = layer(weights, name, joined, position + k, seen)
        assert given["proposals"][b].tolist() == expected


def test_drafts_are_kept_by_row() -> None:
    known = {"proposals": i32([[1, 2], [3, 4], [5, 6]]), "req_pool_indices": ROWS, "draft_tokens": i32([[9] * 3] * 5)}
    given = run("keep_drafts", known, state=("draft_tokens",))["draft_tokens"]
    assert given.tolist() == [[9, 9, 9], [5, 6, 9], [1, 2, 9], [9, 9, 9], [3, 4, 9]]
