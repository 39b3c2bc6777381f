"""The ops of a speculative verify: where a row stands, where it writes, what is chosen, accepted and left behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.parity.suite.by_hand import f32, i32, run
from warfence.serve.sampling import SamplingParams, choose

C, W = 12, 5


def resolve(**changed: Any) -> dict[str, np.ndarray]:
    """Four rows of three queries: two relayed (one a step ahead of the host), one known to the host, one of padding."""
    known = {
        "input_ids": i32([[0, 0, 0], [0, 0, 0], [7, 8, 9], [0, 0, 0]]),
        "from_relay": i32([1, 1, 0, 0]),
        "req_pool_indices": i32([2, 4, 1, 0]),
        "prefix_lens": i32([5, 9, 3, 0]),
        "uniform": f32(np.arange(4 * 7).reshape(4, 7) / 28),
        "relay": i32([90, 91, 92, 93, 94]),
        "seq_lens": i32([40, 41, 5, 43, 11]),
        "draft_tokens": i32(100 + np.arange(5 * 4).reshape(5, 4)),  # one more than this verify takes
    }
    return run("resolve", known | changed, attrs={"proposals": True})[0]


def test_a_relayed_row_stands_where_the_device_says_and_takes_token_and_proposals_from_there() -> None:
    given = resolve()
    assert given["prefix_lens"].tolist() == [5, 11, 3, 0]
    assert given["tokens"].tolist() == [[92, 108, 109], [94, 116, 117], [7, 8, 9], [0, 0, 0]]
    assert given["positions"].tolist() == [[5, 6, 7], [11, 12, 13], [3, 4, 5], [0, 1, 2]]


def test_without_proposals_in_the_state_only_the_first_token_is_relayed() -> None:
    known = {
        "input_ids": i32([[0], [7]]), "from_relay": i32([1, 0]), "req_pool_indices": i32([1, 2]),
        "prefix_lens": i32([4, 4]), "uniform": f32([[0.25], [0.5]]), "relay": i32([0, 55, 66]), "seq_lens": i32([0, 4, 9]),
    }  # fmt: skip
    given, _ = run("resolve", known, attrs={"proposals": False})
    assert given["tokens"].tolist() == [[55], [7]]
    assert given["positions"].tolist() == [[4], [4]]


@pytest.mark.parametrize(
    ("ahead", "skip"), [(0, 0), (1, 1), (4, 4), (5, 4), (99, 4), (-3, 0)], ids=lambda value: str(value)
)
def test_draws_are_skipped_by_as_much_as_the_device_is_ahead_and_never_beyond_those_that_came(
    ahead: int, skip: int
) -> None:
    given = resolve(seq_lens=i32([0, 0, 5 + ahead, 0, 9]))
    assert given["uniform"][0].tolist() == f32((np.arange(3) + skip) / 28).tolist()
    assert given["uniform"][2].tolist() == f32((np.arange(3) + 14) / 28).tolist(), "the host's own row skips nothing"


def test_write_locations_are_the_rows_own_and_slot_0_for_what_is_no_token_or_beyond_the_context() -> None:
    rng = np.random.default_rng(0)
    positions = i32([[0, 1, 2, 3], [C - 2, C - 1, C, C + 1], [4, 5, 6, 7], [C + 5, C + 6, C + 7, C + 8]])
    lens, table = i32([4, 4, 2, 1]), rng.integers(1, 90, (4, C), np.int32)
    expected = [
        [table[b, p] if q < lens[b] and p < C else 0 for q, p in enumerate(row)] for b, row in enumerate(positions)
    ]
    known = {"page_table": table, "positions": positions, "extend_lens": lens}
    assert run("token_locs", known)[0]["out_cache_loc"].tolist() == expected
    assert expected[1][2:] == expected[2][2:] == [0, 0], "both kinds are here"


def test_the_sliding_row_is_translated_whole() -> None:
    rng = np.random.default_rng(1)
    pages, live, rows = rng.integers(0, 30, (4, C), np.int32), rng.integers(0, 20, (1, 30), np.int32), i32([3, 1, 1])
    known = {"req_to_token": pages, "full_to_swa": live, "req_pool_indices": rows}
    given = run("swa_page_table", known)[0]["swa_page_table"]
    assert given.tolist() == [[live[0, pages[r, p]] for p in range(C)] for r in rows]


def test_the_window_is_cut_out_of_the_row_with_slot_0_outside_of_it() -> None:
    rng, queries = np.random.default_rng(2), 3
    row, prefix, lens = rng.integers(1, 90, (4, C), np.int32), i32([0, 2, C - 2, C + 9]), i32([3, 1, 3, 3])
    positions = prefix[:, None] + i32(range(queries))
    known = {"swa_page_table": row, "prefix_lens": prefix, "positions": positions, "extend_lens": lens}
    given, _ = run("swa_window", known, attrs={"window": W})
    for b in range(4):
        at = [prefix[b] - (W - 1) + s for s in range(W - 1 + queries)]
        assert given["swa_table"][b].tolist() == [row[b, p] if 0 <= p < C else 0 for p in at]
        written = [row[b, p] if q < lens[b] and p < C else 0 for q, p in enumerate(positions[b])]
        assert given["swa_out_cache_loc"][b].tolist() == written


def test_logits_of_all_positions_are_those_of_each_as_the_last() -> None:
    rng = np.random.default_rng(3)
    known = {n: f32(rng.normal(0, 1, s)) for n, s in {"hidden": (2, 3, 8), "norm": (8,), "head": (8, 11)}.items()}
    every = run("logits_all", known, attrs={"eps": 1e-5})[0]["logits"]
    assert every.shape == (2, 3, 11)
    for q in range(3):
        last = run("logits", known | {"extend_lens": i32([q + 1] * 2)}, attrs={"eps": 1e-5})[0]["logits"]
        np.testing.assert_allclose(every[:, q], last, rtol=1e-6)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_verify_chooses_each_token_by_the_rule_and_accepts_the_leading_right_ones(sampled: bool, seed: int) -> None:
    """For every number of leading right proposals, with right ones behind the first wrong one that must not count."""
    rng, q = np.random.default_rng(seed), 5
    b = 2 * q + 1  # the last one stands for padding: greedy, all zeros
    logits = f32(rng.normal(0, 2, (b, q, 13)))
    temperature = f32(rng.choice([0.0, 0.4, 1.0], b))
    top_p, uniform = f32(rng.choice([0.3, 0.9, 1.0], b)), f32(rng.random((b, q), np.float32))
    temperature[-1] = logits[-1] = uniform[-1] = 0
    greedy = SamplingParams()
    rules = [SamplingParams(float(t), float(p)) if sampled else greedy for t, p in zip(temperature, top_p, strict=True)]
    chosen = [[choose(logits[i, j], rules[i], float(uniform[i, j])) for j in range(q)] for i in range(b)]
    tokens = i32([[99, *(token for token, _ in row[:-1])] for row in chosen])  # all proposals right
    wrong = [i % q for i in range(b)]  # right proposals before the first wrong one
    for i in range(b - 1):
        if wrong[i] < q - 1:
            tokens[i, wrong[i] + 1] += 1
    tokens[-1] = 0
    known = {"logits": logits, "tokens": tokens, "temperature": temperature, "top_p": top_p, "uniform": uniform}
    given, _ = run("verify", known, attrs={"sampled": sampled})
    for i in range(b - 1):
        assert given["next_tokens"][i].tolist() == [token for token, _ in chosen[i]]
        assert given["margin"][i] == pytest.approx([margin for _, margin in chosen[i]], abs=1e-6)
        assert given["accept_lens"][i] == wrong[i] + 1
        assert given["last_token"][i] == chosen[i][wrong[i]][0]
    assert given["accept_lens"][-1] == q, "padding is all zeros, which is what it chooses"
    assert set(given["accept_lens"].tolist()) == set(range(1, q + 1)), "none, some and all were accepted"


@pytest.mark.parametrize(("token", "lens"), [("last_token", "accept_lens"), ("next_tokens", "extend_lens")])
def test_commit_leaves_token_and_length_of_the_batchs_rows_and_no_others(token: str, lens: str) -> None:
    known = {
        token: i32([50, 51]), lens: i32([3, 1]), "req_pool_indices": i32([4, 2]), "prefix_lens": i32([10, 20]),
        "relay": i32([-1] * 5), "seq_lens": i32([-2] * 5),
    }  # fmt: skip
    given, state = run("commit", known, state=("relay", "seq_lens"), attrs={"token": token, "lens": lens})
    assert given == {}
    assert state["relay"].tolist() == [-1, -1, 51, -1, 50]
    assert state["seq_lens"].tolist() == [-2, -2, 21, -2, 13]


def test_proposals_are_kept_by_row_even_fewer_than_there_is_room_for() -> None:
    known = {
        "proposals": i32([[1, 2], [3, 4]]),
        "req_pool_indices": i32([3, 1]),
        "draft_tokens": i32(np.full((4, 3), 9)),
    }
    given, state = run("keep_drafts", known, state=("draft_tokens",))
    assert given == {}
    assert state["draft_tokens"].tolist() == [[9, 9, 9], [3, 4, 9], [9, 9, 9], [1, 2, 9]]
