"""The ops of the drafter without a model, against a loop over the history of a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from .run_op import i32, run

C = 12


def lookup(histories: Sequence[Sequence[int]], gram: int, count: int) -> np.ndarray:
    """Proposals for rows whose tokens are given; the last of each lies in the relay, the others at scattered slots."""
    rows = len(histories)
    slots = 1 + np.random.default_rng(0).permutation(rows * C).reshape(rows, C)
    slot_tokens = np.full(1 + rows * C, 77, np.int32)  # what is stale looks like a token
    for b, tokens in enumerate(histories):
        slot_tokens[slots[b, : len(tokens) - 1]] = tokens[:-1]
    known = {
        "page_table": i32(slots), "req_pool_indices": i32(range(1, rows + 1)), "slot_tokens": slot_tokens,
        "relay": i32([0, *(tokens[-1] for tokens in histories)]),
        "seq_lens": i32([0, *(len(tokens) - 1 for tokens in histories)]),
    }  # fmt: skip
    state = ("relay", "seq_lens", "slot_tokens")
    given = run("ngram_lookup", known, ("proposals",), state=state, attrs={"gram": gram, "count": count})
    for name in state:
        np.testing.assert_array_equal(given[name], known[name])
    return given["proposals"]


def expected(history: Sequence[int], gram: int, count: int) -> list[int]:
    """The same, token by token."""
    newest = len(history) - 1
    best, length = -1, 0
    for e in range(newest):
        m = 0
        while m < gram and e - m >= 0 and history[e - m] == history[newest - m]:
            m += 1
        if m > 0 and m >= length:
            best, length = e, m
    if length == 0:
        return [0] * count
    return [history[best + 1 + k] if best + 1 + k <= newest else 0 for k in range(count)]


def test_what_followed_the_longest_and_latest_match_is_proposed() -> None:
    rows = ([1, 2, 3, 4, 9, 3, 5, 1, 2, 3], [8, 5, 8, 6, 8], [1, 2, 3, 4])
    assert lookup(rows, gram=3, count=4).tolist() == [
        [4, 9, 3, 5],  # three tokens alike at the start, one alike later: the longer match
        [6, 8, 0, 0],  # two matches of one token: the later; then the history ends
        [0, 0, 0, 0],  # no match
    ]


def test_one_token_or_none_in_the_cache_proposes_nothing() -> None:
    assert lookup(([5], [5, 5], [5, 6]), gram=3, count=3).tolist() == [[0] * 3, [5, 0, 0], [0] * 3]


def test_a_row_that_filled_its_context_takes_the_newest_token_as_its_last() -> None:
    """`seq_lens` may reach the context; the newest token then stands in the last column."""
    slots, tokens = i32([range(1, C + 1)]), i32(range(C + 1))
    known = {"page_table": slots, "req_pool_indices": i32([1]), "slot_tokens": tokens, "relay": i32([0, 3]),
             "seq_lens": i32([0, C + 2])}  # fmt: skip
    state = ("relay", "seq_lens", "slot_tokens")
    given = run("ngram_lookup", known, ("proposals",), state=state, attrs={"gram": 2, "count": 9})["proposals"]
    assert given.tolist() == [[4, 5, 6, 7, 8, 9, 10, 11, 3]]


@pytest.mark.parametrize(("gram", "count"), [(1, 2), (3, 5), (20, 1)])
def test_random_histories(gram: int, count: int) -> None:
    rng = np.random.default_rng(gram)
    rows = [rng.integers(1, 4, rng.integers(1, C + 1)).tolist() for _ in range(60)]
    assert lookup(rows, gram, count).tolist() == [expected(tokens, gram, count) for tokens in rows]


def test_stored_tokens_lie_at_their_slots() -> None:
    known = {"tokens": i32([[5, 6, 7], [8, 9, 9]]), "out_cache_loc": i32([[3, 1, 4], [2, 0, 0]]),
             "slot_tokens": i32([0] * 6)}  # fmt: skip
    given = run("ngram_store", known, state=("slot_tokens",))["slot_tokens"]
    assert given.tolist() == [9, 6, 8, 5, 7, 0]
