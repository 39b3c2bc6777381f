"""The ops of the draft by look-up, against a loop over all earlier positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

B, C, SLOTS = 3, 12, 61


def expected(history: list[int], gram: int, count: int) -> list[int]:
    """`history` ends with the relay's token, whose followers are asked for."""
    end, best, longest = len(history) - 1, -1, 0
    for e in range(end):
        m = 0
        while m < gram and e - m >= 0 and history[e - m] == history[end - m]:
            m += 1
        if m and m >= longest:
            best, longest = e, m
    if not longest:
        return [0] * count
    return [history[best + 1 + k] if best + 1 + k <= end else 0 for k in range(count)]


def looked_up(run: Any, world: Any, histories: list[list[int]], gram: int, count: int) -> list[list[int]]:
    """Lay the histories out in slots, lengths and relay, and ask the op. What is beyond a history is a token that fits."""
    slot_tokens, seq_lens, relay = np.full(SLOTS, 1, np.int32), world["seq_lens"], world["relay"]
    for b, row in enumerate(world["req_pool_indices"]):
        *cached, relay[row] = histories[b]
        seq_lens[row] = len(cached)
        slot_tokens[world["page_table"][b, : len(cached)]] = cached[:C]
    changes = {"slot_tokens": slot_tokens, "seq_lens": seq_lens, "relay": relay}
    return run("ngram_lookup", changes, gram=gram, count=count)[0]["proposals"].tolist()


@pytest.mark.parametrize("gram", [1, 2, 3, 5])
@pytest.mark.parametrize("tokens", [1, 2, 3, 9])  # few: matches overlap and tie; many: there is none
def test_proposals_follow_the_longest_latest_match(run: Any, world: Any, gram: int, tokens: int) -> None:
    rng = np.random.default_rng(10 * gram + tokens)
    for _ in range(20):
        histories = [rng.integers(1, 1 + tokens, rng.integers(1, C + 1)).tolist() for _ in range(B)]
        assert looked_up(run, world, histories, gram, 3) == [expected(h, gram, 3) for h in histories], histories


def test_edges(run: Any, world: Any) -> None:
    alone, fresh, short = [7], [1, 2, 3, 4], [5, 6, 5]
    assert looked_up(run, world, [alone, fresh, short], 2, 3) == [[0, 0, 0], [0, 0, 0], [6, 5, 0]]
    longest, latest, full = [8, 9, 4, 3, 9, 8, 9], [1, 2, 1, 3, 1], [4] * C
    assert looked_up(run, world, [longest, latest, full], 2, 3) == [[4, 3, 9], [3, 1, 0], [4, 0, 0]]


def test_a_row_that_fills_the_context_keeps_the_relay_in_its_last_column(run: Any, world: Any) -> None:
    """seq_lens of C and more: the history is cut to C-1 and the relay's token stands at C-1."""
    cached = [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]
    assert looked_up(run, world, [[*cached, 3], [*cached, 4, 2], [7]], 3, 2)[:2] == [
        expected([*cached[:-1], 3], 3, 2), expected([*cached[:-1], 2], 3, 2)]  # fmt: skip


def test_slots_remember_their_tokens(run: Any, world: Any) -> None:
    _, after = run("ngram_store")
    slot_tokens = world["slot_tokens"]
    for b in range(B):
        for q in range(4):
            slot_tokens[world["out_cache_loc"][b, q]] = world["tokens"][b, q]
    np.testing.assert_array_equal(after["slot_tokens"], slot_tokens)
