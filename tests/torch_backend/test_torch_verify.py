"""The ops around a verify, against loops over rows and positions. Shapes and edge cases: see conftest.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.serve.sampling import SamplingParams, choose

B, Q, C, W, DRAWS = 3, 4, 12, 5, 7


def i32(values: object) -> np.ndarray:
    return np.asarray(values, np.int32)


@pytest.mark.parametrize("proposals", [True, False])
@pytest.mark.parametrize(
    "ahead", [0, 1, 2, 3, 5, -1]
)  # 5: more than there are draws to skip; -1: behind the host's guess
def test_resolve_takes_the_devices_place_for_relayed_rows(run: Any, world: Any, proposals: bool, ahead: int) -> None:
    rows, prefix, relayed = world["req_pool_indices"], world["prefix_lens"], [1, 0, 1]
    seq_lens = world["seq_lens"]
    seq_lens[rows] = prefix + ahead
    given, _ = run("resolve" if proposals else "resolve, no proposals", {"seq_lens": seq_lens})
    for b, row in enumerate(rows):
        at = prefix[b] + ahead if relayed[b] else prefix[b]
        tokens = world["input_ids"][b].tolist()
        if relayed[b]:
            tokens[0] = world["relay"][row]
        if relayed[b] and proposals:
            tokens[1:] = world["draft_tokens"][row][: Q - 1].tolist()
        skip = min(max(at - prefix[b], 0), DRAWS - Q)
        assert given["prefix_lens"][b] == at
        assert given["positions"][b].tolist() == [at + q for q in range(Q)]
        assert given["tokens"][b].tolist() == tokens
        assert given["uniform"][b].tolist() == [world["uniform"][b, skip + q] for q in range(Q)]


def test_resolve_of_one_query(run: Any, world: Any) -> None:
    one = {"input_ids": world["input_ids"][:, :1].copy()}
    given, _ = run("resolve", one)
    assert given["tokens"].tolist() == [[world["relay"][2]], world["input_ids"][1, :1].tolist(), [world["relay"][1]]]
    assert given["uniform"].shape == (B, 1)


def test_token_locs_are_0_for_padding_and_outside_of_the_context(run: Any, world: Any) -> None:
    given, _ = run("token_locs")
    expected = np.zeros((B, Q), np.int32)
    for b in range(B):
        for q in range(Q):
            position = world["positions"][b, q]
            if q < world["extend_lens"][b] and position < C:
                expected[b, q] = world["page_table"][b, position]
    assert (expected[1, 2:] == 0).all()
    assert (expected[2, 2:] == 0).all()
    np.testing.assert_array_equal(given["out_cache_loc"], expected)


def test_the_window_out_of_a_snapshot(run: Any, world: Any) -> None:
    snapshot = run("swa_page_table")[0]["swa_page_table"]
    for b, row in enumerate(world["req_pool_indices"]):
        assert snapshot[b].tolist() == [world[FULL_TO_SWA][0, world[REQ_TO_TOKEN][row, c]] for c in range(C)]

    given, _ = run("swa_window", {"swa_page_table": snapshot})
    table, out = np.zeros((B, W - 1 + Q), np.int32), np.zeros((B, Q), np.int32)
    for b in range(B):
        for s in range(W - 1 + Q):
            position = world["prefix_lens"][b] - (W - 1) + s
            table[b, s] = snapshot[b, position] if 0 <= position < C else 0
        for q in range(Q):
            position = world["prefix_lens"][b] + q
            out[b, q] = snapshot[b, position] if q < world["extend_lens"][b] and position < C else 0
    np.testing.assert_array_equal(given["swa_table"], table)
    np.testing.assert_array_equal(given["swa_out_cache_loc"], out)


def test_the_window_is_what_swa_translate_says_inside_of_the_context(run: Any, world: Any) -> None:
    prefix = i32([5, 3, 7])
    positions = prefix[:, None] + np.arange(Q, dtype=np.int32)
    out = i32([[world["page_table"][b, p] for p in positions[b]] for b in range(B)])
    at = {"prefix_lens": prefix, "positions": positions, "extend_lens": i32([Q] * B), "out_cache_loc": out}
    snapshot, _ = run("swa_page_table")
    window, _ = run("swa_window", {**at, **snapshot})
    translated, _ = run("swa_translate", at)
    for name, value in translated.items():
        np.testing.assert_array_equal(window[name], value)


def test_logits_of_every_position(run: Any, world: Any) -> None:
    given, _ = run("logits_all")
    for b in range(B):
        for q in range(Q):
            x = world["hidden"][b, q].astype(np.float64)
            x = x / np.sqrt((x * x).mean() + 1e-5) * world["norm"]
            np.testing.assert_allclose(given["logits"][b, q], x @ world["head"], rtol=1e-4, atol=1e-4)
    last, _ = run("logits", {"extend_lens": i32([Q] * B)})
    np.testing.assert_allclose(given["logits"][:, -1], last["logits"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sampled", [False, True])
def test_verify_accepts_the_run_of_right_proposals(run: Any, world: Any, sampled: bool) -> None:
    """Rows: greedy and sampled. Proposals: all right, none right, and right again after a wrong one."""
    chosen, margins = np.zeros((B, Q), np.int32), np.zeros((B, Q))
    for b in range(B):
        params = SamplingParams(float(world["temperature"][b]) if sampled else 0.0, float(world["top_p"][b]))
        for q in range(Q):
            chosen[b, q], margins[b, q] = choose(world["logits"][b, q], params, float(world["uniform"][b, q]))
    assert margins.min() > 1e-5, "near ties: choose other arrays"
    for accepted in range(Q):
        tokens = np.concatenate([world["tokens"][:, :1], chosen[:, :-1]], axis=1)
        tokens[:, 1 + accepted : 2 + accepted] += 1  # all behind it is right again
        given, _ = run("verify", {"tokens": tokens}, sampled=sampled)
        np.testing.assert_array_equal(given["next_tokens"], chosen)
        np.testing.assert_allclose(given["margin"], margins, atol=1e-6)
        assert given["accept_lens"].tolist() == [accepted + 1] * B
        assert given["last_token"].tolist() == chosen[:, accepted].tolist()


def test_verify_of_one_query_is_sample(run: Any, world: Any) -> None:
    one = {
        "logits": world["logits"][:, :1].copy(),
        "tokens": world["tokens"][:, :1],
        "uniform": world["uniform"][:, :1],
    }
    given, _ = run("verify", one)
    sampled, _ = run("sample")
    np.testing.assert_array_equal(given["next_tokens"][:, 0], sampled["next_tokens"])
    np.testing.assert_array_equal(given["margin"][:, 0], sampled["margin"])
    assert given["accept_lens"].tolist() == [1] * B
    np.testing.assert_array_equal(given["last_token"], sampled["next_tokens"])


def test_commit_leaves_token_and_length_in_the_rows(run: Any, world: Any) -> None:
    _, after = run("commit")
    relay, seq_lens = world["relay"], world["seq_lens"]
    for b, row in enumerate(world["req_pool_indices"]):
        relay[row] = world["token"][b]
        seq_lens[row] = world["prefix_lens"][b] + world["lens"][b]
    np.testing.assert_array_equal(after["relay"], relay)
    np.testing.assert_array_equal(after["seq_lens"], seq_lens)
