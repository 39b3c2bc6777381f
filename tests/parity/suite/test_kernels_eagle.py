"""EAGLE on pages: what the target leaves, the draft's own launch, and proposals, against one growing sequence."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.suite.by_hand import causal, close, f32, i32, run
from tests.parity.suite.paged import BLOCK, EXTEND, VERIFY, Paged, shared_small_model
from warfence.host.rope import plain
from warfence.parity.small import SmallModel

KEPT = ("eagle_hidden", "eagle_tokens", "eagle_lens")
PROMPTS = {1: (5, 9, 2, 7, 1, 8), 3: (40,)}
KINDS = ["snapshot", "captured", "live"]


@pytest.fixture(scope="module")
def small() -> SmallModel:
    return shared_small_model()


def prefilled(small: SmallModel, attention: str = "captured") -> Paged:
    paged = Paged(small, "eagle", attention)
    for row, prompt in PROMPTS.items():
        paged.extend(row, prompt)
        paged.draft_extend(EXTEND, row)
    return paged


def text(small: SmallModel, paged: Paged, prompt: tuple[int, ...], count: int) -> list[int]:
    """The next `count` tokens of the target, greedily."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(paged.scores(paged.dense.target(ids)[-1][-1]).argmax()))
    return ids[len(prompt) :]


def proposed(paged: Paged, ids: tuple[int, ...]) -> list[int]:
    """What the draft proposes behind `ids`, of which the target has seen all but the last."""
    dense, w = paged.dense, paged.dense.weights
    hidden = dense.target(ids[:-1])[-1]
    joined = np.concatenate([w["embed"][list(ids[1:])], hidden], axis=-1) @ w["eagle.fc"]
    proposals: list[int] = []
    while True:
        out = dense.layer("eagle.layer.0", joined, range(len(joined)), causal)[-1]
        proposals.append(int(paged.scores(out, "eagle.norm").argmax()))
        if len(proposals) == BLOCK - 1:
            return proposals
        step = np.concatenate([w["embed"][proposals[-1]], out]) @ w["eagle.fc"]
        joined = np.concatenate([joined, step[None]])


@pytest.mark.parametrize("attention", KINDS)
def test_after_a_prefill_the_proposals_are_those_of_one_sequence(small: SmallModel, attention: str) -> None:
    paged = prefilled(small, attention)
    for row, prompt in PROMPTS.items():
        known = text(small, paged, prompt, 1)
        assert paged.state["draft_tokens"][row].tolist() == proposed(paged, (*prompt, *known))


@pytest.mark.slow
@pytest.mark.parametrize("right", range(BLOCK))
@pytest.mark.parametrize("attention", KINDS)
def test_after_a_verify_they_go_on_from_what_was_accepted(small: SmallModel, attention: str, right: int) -> None:
    """For none, some and all of the proposals right, two verifies on end, with another row in the batch."""
    paged = prefilled(small, attention)
    prompt, length = PROMPTS[1], 0
    tokens = text(small, paged, prompt, 2 * BLOCK + 1)
    for _ in range(2):
        drafts = tokens[length + 1 : length + BLOCK]
        if right < BLOCK - 1:
            drafts[right] += 1
        paged.state["draft_tokens"][1] = drafts
        seen = paged.decoding(VERIFY, 3, 1)
        assert seen["accept_lens"][1] == right + 1
        paged.draft_extend(VERIFY, 3, 1)
        length += right + 1
        assert paged.state["draft_tokens"][1].tolist() == proposed(paged, (*prompt, *tokens[: length + 1]))


def test_what_lies_behind_the_accepted_positions_in_the_draft_pool_is_never_seen(small: SmallModel) -> None:
    paged = prefilled(small)
    paged.decoding(VERIFY, 1)
    before = paged.state["seq_lens"][1]
    paged.state["draft_kv.0"][:, paged.table[1, before:]] = 50.0
    paged.draft_extend(VERIFY, 1)
    ids = (*PROMPTS[1], *text(small, paged, PROMPTS[1], int(before) - len(PROMPTS[1]) + 1))
    assert paged.state["draft_tokens"][1].tolist() == proposed(paged, ids)


def state(rows: int, most: int, d: int = 4) -> dict[str, np.ndarray]:
    return {
        "eagle_hidden": f32(np.full((rows, most, d), 7)), "eagle_tokens": i32(np.full((rows, most), 8)),
        "eagle_lens": i32(np.full((rows, 2), 9)),
    }  # fmt: skip


def test_each_step_of_a_proposal_stands_at_its_own_position(small: SmallModel) -> None:
    """Many rows over a random pool, their attention sharp, so that the best token hangs on who sees what from where."""
    paged, rng, rows, queries = Paged(small, "eagle"), np.random.default_rng(2), 12, 3
    dense, w, layer = paged.dense, paged.dense.weights, "eagle.layer.0"
    for name, by in (("wq", 3), ("wk", 3), ("wo", 8)):
        w[f"{layer}.{name}"] = w[f"{layer}.{name}"] * f32(by)
    pool, table = f32(rng.normal(0, 1, (2, 99, 2, 8))), rng.integers(1, 99, (rows, 12), np.int32)
    prefix, lens = rng.integers(0, 9, rows, np.int32), rng.integers(1, queries + 1, rows, np.int32)
    hidden = f32(rng.normal(0, 1, (rows, queries, 32)))
    attrs = {
        "weights": layer, "pool": "pool", "count": 4, "heads": 4, "kv_heads": 2, "head_dim": 8, "rope": plain(8, 1e4), "eps": 1e-5
    }  # fmt: skip
    known = w | {"hidden": hidden, "extend_lens": lens, "prefix_lens": prefix, "page_table": table, "pool": pool}
    given, _ = run("eagle_propose", known, attrs=attrs)
    for b in range(rows):
        cached = int(prefix[b] + lens[b])
        past = (pool[0][table[b, :cached]], pool[1][table[b, :cached]])
        out, steps, expected = hidden[b, lens[b] - 1], [], []
        for _ in range(4):
            expected.append(int(paged.scores(out, "eagle.norm").argmax()))
            steps.append(np.concatenate([w["embed"][expected[-1]], out]) @ w["eagle.fc"])
            out = dense.layer(layer, np.stack(steps), range(cached, cached + len(steps)), causal, past)[-1]
        assert given["proposals"][b].tolist() == expected


@pytest.mark.parametrize("verified", [True, False])
def test_the_target_leaves_each_hidden_state_with_the_token_that_follows_it(verified: bool) -> None:
    rng, lens = np.random.default_rng(0), i32([1, 3, 2])
    hidden, tokens = f32(rng.normal(0, 1, (3, 3, 4))), i32([[10, 11, 12], [20, 21, 22], [30, 31, 0]])
    chosen = i32([[40, 41, 42], [50, 51, 52], [60, 61, 62]]) if verified else i32([70, 71, 72])
    known = state(5, 6) | {
        "hidden": hidden, "tokens": tokens, "next_tokens": chosen, "req_pool_indices": i32([4, 2, 1]),
        "prefix_lens": i32([0, 5, 6]), "lens": lens,
    }  # fmt: skip
    given, after = run("eagle_keep", known, state=KEPT, attrs={"lens": "lens", "verified": verified})
    assert given == {}
    for b, row in enumerate([4, 2, 1]):
        n = lens[b]
        following = chosen[b, :n].tolist() if verified else [*tokens[b, 1:n].tolist(), int(chosen[b])]
        assert after["eagle_tokens"][row, :n].tolist() == following
        assert after["eagle_hidden"][row, :3].tolist() == hidden[b].tolist()
        assert after["eagle_lens"][row].tolist() == [[0, 5, 6][b], n]
    assert (after["eagle_tokens"][[0, 3]] == 8).all(), "other rows keep theirs"
    assert (after["eagle_hidden"][:, 3:] == 7).all()


def test_the_draft_takes_them_from_there_with_lengths_that_fit_its_launch() -> None:
    rng, queries = np.random.default_rng(1), 3
    kept = state(4, 6)
    kept["eagle_hidden"] = f32(rng.normal(0, 1, (4, 6, 4)))
    kept["eagle_tokens"] = rng.integers(0, 9, (4, 6), np.int32)
    kept["eagle_lens"] = i32([[0, 0], [5, 2], [6, 3], [7, 5]])  # of row 0, padding, nothing may be there yet
    known = kept | {
        "req_pool_indices": i32([3, 0, 1]), "embed": f32(rng.normal(0, 1, (9, 4))), "eagle.fc": f32(rng.normal(0, 1, (8, 4)))
    }  # fmt: skip
    given, after = run("eagle_inputs", known, state=KEPT, attrs={"queries": queries})
    assert given["prefix_lens"].tolist() == [7, 0, 5]
    assert given["extend_lens"].tolist() == [3, 1, 2]
    assert given["positions"].tolist() == [[7, 8, 9], [0, 1, 2], [5, 6, 7]]
    for b, row in enumerate([3, 0, 1]):
        for q in range(queries):
            joined = np.concatenate([known["embed"][kept["eagle_tokens"][row, q]], kept["eagle_hidden"][row, q]])
            close(given["hidden"][b, q], joined.astype(np.float64) @ known["eagle.fc"])
    assert all(np.array_equal(after[name], kept[name]) for name in KEPT), "it only looks"
