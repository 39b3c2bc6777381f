"""N-gram look-up against its definition, position by position; and what it makes of rows that hold nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.parity.suite.by_hand import i32, run

GRAM, COUNT = 3, 4


def lookup(
    rows: list[tuple[list[int], int]], context: int = 14, gram: int = GRAM
) -> tuple[list[list[int]], dict[str, Any]]:
    """(proposals, arrays) for rows of (tokens in the cache, last token), their slots scattered over a pool of leftovers.

    A row may have more tokens than the context: then its length is beyond the context's end.
    """
    rng, b = np.random.default_rng(len(rows)), len(rows)
    table = rng.permutation(np.arange(1, 1 + b * context)).astype(np.int32).reshape(b, context)
    known = {
        "page_table": table, "req_pool_indices": i32(1 + np.arange(b)[::-1]),
        "relay": i32(np.zeros(b + 1)), "seq_lens": i32(np.zeros(b + 1)),
        "slot_tokens": rng.integers(0, 3, 1 + b * context, np.int32),
    }  # fmt: skip
    for i, (tokens, last) in enumerate(rows):
        row = known["req_pool_indices"][i]
        known["relay"][row], known["seq_lens"][row] = last, len(tokens)
        known["slot_tokens"][table[i, : len(tokens)]] = tokens[:context]
    given, after = run(
        "ngram_lookup", known, state=("relay", "seq_lens", "slot_tokens"), attrs={"gram": gram, "count": COUNT}
    )
    assert all(np.array_equal(after[name], known[name]) for name in after), "it only looks"
    return given["proposals"].tolist(), known


def by_definition(known: dict[str, Any], i: int, gram: int) -> list[int]:
    row, context = known["req_pool_indices"][i], known["page_table"].shape[1]
    length = min(int(known["seq_lens"][row]), context - 1)
    history = [int(known["slot_tokens"][s]) for s in known["page_table"][i, :length]] + [int(known["relay"][row])]
    best, end = 0, -1
    for e in range(length):
        m = 0
        while m < gram and e - m >= 0 and history[e - m] == history[length - m]:
            m += 1
        if m and m >= best:
            best, end = m, e
    if best == 0:
        return [0] * COUNT
    return [history[end + 1 + k] if end + 1 + k <= length else 0 for k in range(COUNT)]


@pytest.mark.parametrize("gram", [1, 2, 3])
@pytest.mark.parametrize("alphabet", [2, 4])
def test_random_rows_follow_the_definition(gram: int, alphabet: int) -> None:
    rng = np.random.default_rng(gram)
    for _ in range(40):
        lengths = rng.integers(0, 17, 3)  # up to three beyond the context
        rows = [(rng.integers(0, alphabet, n).tolist(), int(rng.integers(0, alphabet))) for n in lengths]
        proposals, known = lookup(rows, gram=gram)
        assert proposals == [by_definition(known, i, gram) for i in range(3)]


@pytest.mark.parametrize(
    ("tokens", "last", "expected"),
    [
        ([1, 2, 3, 4], 9, [0, 0, 0, 0]),  # it never stood there before
        ([], 5, [0, 0, 0, 0]),  # nothing is cached
        ([5, 6, 7, 8, 1, 2], 5, [6, 7, 8, 1]),
        ([5, 6, 5, 7, 3], 5, [7, 3, 5, 0]),  # of equal runs the latest; behind the known text nothing
        ([1, 5, 6, 7, 2, 5, 8, 1], 5, [6, 7, 2, 5]),  # the longer run wins over the later one
        ([7, 7, 7], 7, [7, 0, 0, 0]),  # a run may overlap the end; it ends at the last place before it
    ],
    ids=["no match", "empty", "one match", "ties", "longest", "overlap"],
)  # fmt: skip
def test_what_followed_last_time(tokens: list[int], last: int, expected: list[int]) -> None:
    assert lookup([(tokens, last)])[0] == [expected]


def test_leftovers_in_the_slots_of_later_positions_are_no_history() -> None:
    """Rejected proposals lie behind the row's length, and the last token's own slot holds what was proposed for it."""
    rows = [([4, 1, 2, 3], 1)]
    for leftover in (1, 2, 9):
        proposals, known = lookup(rows)
        known["slot_tokens"][known["page_table"][0, 4:]] = leftover
        again, _ = run(
            "ngram_lookup", known, state=("relay", "seq_lens", "slot_tokens"), attrs={"gram": GRAM, "count": COUNT}
        )
        assert again["proposals"].tolist() == proposals == [[2, 3, 1, 0]]


def test_padding_proposes_nothing_or_only_zeros() -> None:
    known = {
        "page_table": i32(np.zeros((1, 6))), "req_pool_indices": i32([0]), "relay": i32([0]), "seq_lens": i32([1]),
        "slot_tokens": i32(np.zeros(4)),
    }  # fmt: skip
    given, _ = run("ngram_lookup", known, state=("relay", "seq_lens", "slot_tokens"), attrs={"gram": 3, "count": 4})
    assert given["proposals"].tolist() == [[0, 0, 0, 0]]


def test_each_slot_notes_its_token() -> None:
    known = {
        "tokens": i32([[5, 6, 7], [8, 9, 9]]), "out_cache_loc": i32([[4, 1, 3], [2, 0, 0]]), "slot_tokens": i32([0] * 6)
    }  # fmt: skip
    given, after = run("ngram_store", known, state=("slot_tokens",))
    assert given == {}
    assert after["slot_tokens"].tolist()[1:] == [6, 8, 7, 5, 0], "slot 0 is padding's"
