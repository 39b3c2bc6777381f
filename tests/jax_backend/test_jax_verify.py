"""The ops of a launch whose rows stand where only the device knows, each against a loop over rows and queries."""

from __future__ import annotations

import numpy as np
import pytest

from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.serve.sampling import SamplingParams, choose

from .run_op import close, f32, i32, normal, run

B, Q, C, U = 3, 4, 10, 7
ROWS = i32([2, 4, 1])


@pytest.mark.parametrize("proposals", [False, True])
def test_resolve_takes_what_only_the_device_knows(proposals: bool) -> None:
    rng = np.random.default_rng(0)
    ids, drafts = rng.integers(1, 50, (B, Q)), rng.integers(50, 99, (5, Q - 1))
    relay, seq_lens, prefix = i32([9, 8, 7, 6, 5]), i32([0, 3, 6, 2, 9]), i32([4, 9, 3])
    from_relay, uniform = i32([1, 1, 0]), rng.uniform(size=(B, U)).astype(np.float32)
    known = {"input_ids": i32(ids), "from_relay": from_relay, "req_pool_indices": ROWS, "prefix_lens": prefix,
             "uniform": uniform, "relay": relay, "seq_lens": seq_lens}  # fmt: skip
    state = ("relay", "seq_lens")
    if proposals:
        known, state = {**known, "draft_tokens": i32(drafts)}, (*state, "draft_tokens")
    gives = ("tokens", "positions", "prefix_lens", "uniform")
    given = run("resolve", known, gives, state=state, attrs={"proposals": proposals})
    for b in range(B):
        row, relayed = ROWS[b], from_relay[b]
        n = seq_lens[row] if relayed else prefix[b]
        tokens = [relay[row] if relayed else ids[b, 0], *(drafts[row] if relayed and proposals else ids[b, 1:])]
        assert given["tokens"][b].tolist() == list(tokens)
        assert given["positions"][b].tolist() == list(range(n, n + Q))
        assert given["prefix_lens"][b] == n
        skip = n - prefix[b]
        assert given["uniform"][b].tolist() == uniform[b, skip : skip + Q].tolist()
    for name in state:
        np.testing.assert_array_equal(given[name], known[name])


def test_resolve_keeps_the_draws_in_range() -> None:
    """Rows that nobody uses any more may stand anywhere: far behind the host, or far ahead of it."""
    uniform = f32([[0, 1, 2, 3, 4, 5, 6]] * 2)
    known = {"input_ids": i32([[1] * Q] * 2), "from_relay": i32([1, 1]), "req_pool_indices": i32([1, 2]),
             "prefix_lens": i32([5, 0]), "uniform": uniform, "relay": i32([0] * 3), "seq_lens": i32([0, 1, 9])}  # fmt: skip
    gives = ("tokens", "positions", "prefix_lens", "uniform")
    given = run("resolve", known, gives, state=("relay", "seq_lens"), attrs={"proposals": False})
    assert given["uniform"].tolist() == [[0, 1, 2, 3], [3, 4, 5, 6]]


def test_one_query_resolves_without_proposals() -> None:
    known = {"input_ids": i32([[3]]), "from_relay": i32([1]), "req_pool_indices": i32([1]), "prefix_lens": i32([2]),
             "uniform": f32([[0.5]]), "relay": i32([0, 7]), "seq_lens": i32([0, 2]), "draft_tokens": i32([[0], [4]])}  # fmt: skip
    gives, state = ("tokens", "positions", "prefix_lens", "uniform"), ("relay", "seq_lens", "draft_tokens")
    given = run("resolve", known, gives, state=state, attrs={"proposals": True})
    assert (given["tokens"].tolist(), given["positions"].tolist()) == ([[7]], [[2]])


def place(table: np.ndarray, position: int) -> int:
    return int(table[position]) if 0 <= position < C else 0


@pytest.mark.parametrize("window", [1, 5])
def test_locations_and_windows_stop_at_the_ends_of_the_row(window: int) -> None:
    rng = np.random.default_rng(1)
    table, prefix, extend = i32(rng.integers(1, 90, (B, C))), i32([0, 8, 12]), i32([4, 2, 3])
    positions = prefix[:, None] + i32(range(Q))
    located = {"positions": positions, "extend_lens": extend}
    out = run("token_locs", {"page_table": table, **located}, ("out_cache_loc",))["out_cache_loc"]
    known = {"swa_page_table": table, "prefix_lens": prefix, **located}
    given = run("swa_window", known, ("swa_table", "swa_out_cache_loc"), attrs={"window": window})
    for b in range(B):
        expected = [place(table[b], prefix[b] + q) if q < extend[b] else 0 for q in range(Q)]
        assert out[b].tolist() == given["swa_out_cache_loc"][b].tolist() == expected
        seen = range(prefix[b] - (window - 1), prefix[b] + Q)
        assert given["swa_table"][b].tolist() == [place(table[b], p) for p in seen]


def test_swa_page_table_translates_the_whole_row() -> None:
    rng = np.random.default_rng(2)
    table, swa = i32(rng.integers(0, 30, (5, C))), i32(rng.integers(0, 20, (1, 30)))
    known = {REQ_TO_TOKEN: table, FULL_TO_SWA: swa, "req_pool_indices": ROWS}
    given = run("swa_page_table", known, ("swa_page_table",))["swa_page_table"]
    assert given.tolist() == [[swa[0, slot] for slot in table[row]] for row in ROWS]


def test_logits_all_are_those_of_every_position() -> None:
    hidden, weight, head = normal(3, B, Q, 6), normal(4, 6), normal(5, 6, 11)
    known = {"hidden": hidden, "norm": weight, "head": head}
    given = run("logits_all", known, ("logits",), attrs={"eps": 1e-5})["logits"]
    for b in range(B):
        for q in range(Q):
            x = hidden[b, q].astype(np.float64)
            close(given[b, q], (x / np.sqrt((x * x).mean() + 1e-5) * weight) @ head)


GIVES = ("next_tokens", "margin", "accept_lens", "last_token")


@pytest.mark.slow
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("queries", [1, Q])
def test_verify_accepts_up_to_the_first_proposal_that_was_not_chosen(sampled: bool, queries: int) -> None:
    """Rows: all accepted, none accepted, one accepted and a later one right by chance; each greedy and sampled."""
    rng = np.random.default_rng(6)
    rows = 6
    logits = rng.normal(size=(rows, queries, 17)).astype(np.float32) * 3
    temperature = f32([0, 0, 0, 0.7, 1.3, 0.9])
    top_p, uniform = f32([1, 1, 1, 0.9, 0.8, 1]), rng.uniform(size=(rows, queries)).astype(np.float32)
    expected, margins = np.zeros((rows, queries), np.int32), np.zeros((rows, queries))
    for b in range(rows):
        for q in range(queries):
            params = SamplingParams(float(temperature[b]) if sampled else 0.0, float(top_p[b]))
            expected[b, q], margins[b, q] = choose(logits[b, q], params, float(uniform[b, q]))
    tokens = np.concatenate([np.full((rows, 1), 3, np.int32), expected[:, :-1]], axis=1)
    if queries > 1:
        tokens[[1, 4], 1] += 1
        tokens[[2, 5], 2] += 1
    known = {"logits": logits, "tokens": tokens, "temperature": temperature, "top_p": top_p, "uniform": uniform}
    given = run("verify", known, GIVES, attrs={"sampled": sampled})
    assert given["next_tokens"].tolist() == expected.tolist()
    np.testing.assert_allclose(given["margin"], margins, atol=1e-5)
    accepted = [queries, 1, 2] * 2 if queries > 1 else [1] * rows
    assert given["accept_lens"].tolist() == accepted
    assert given["last_token"].tolist() == [expected[b, n - 1] for b, n in enumerate(accepted)]


def test_commit_leaves_token_and_length_by_the_names_it_is_given() -> None:
    known = {"last_token": i32([11, 12, 13]), "accept_lens": i32([1, 4, 2]), "req_pool_indices": ROWS,
             "prefix_lens": i32([5, 6, 7]), "relay": i32(range(5)), "seq_lens": i32(range(5))}  # fmt: skip
    attrs = {"token": "last_token", "lens": "accept_lens"}
    given = run("commit", known, state=("relay", "seq_lens"), attrs=attrs)
    assert given["relay"].tolist() == [0, 13, 11, 3, 12]
    assert given["seq_lens"].tolist() == [0, 9, 6, 3, 10]


def test_padding_rows_may_all_write_the_reserved_row() -> None:
    known = {"next_tokens": i32([11, 0, 0]), "extend_lens": i32([3, 1, 1]), "req_pool_indices": i32([2, 0, 0]),
             "prefix_lens": i32([5, 0, 0]), "relay": i32([0] * 3), "seq_lens": i32([0] * 3)}  # fmt: skip
    attrs = {"token": "next_tokens", "lens": "extend_lens"}
    given = run("commit", known, state=("relay", "seq_lens"), attrs=attrs)
    assert (given["relay"].tolist(), given["seq_lens"].tolist()) == ([0, 0, 11], [1, 0, 8])
