"""DFLASH on pages, in batches and with padding, against one sequence without any of these."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.suite.by_hand import close, everything, f32, i32, run
from tests.parity.suite.paged import BLOCK, CHUNK, CONTEXT, VERIFY, Paged, shared_small_model
from warfence.host.rope import plain
from warfence.parity.small import SmallModel

PROMPTS = {1: (5, 9, 2, 7, 1, 8, 3, 4, 6, 11, 12), 3: (40, 43, 34)}


@pytest.fixture(scope="module")
def small() -> SmallModel:
    return shared_small_model()


def prefilled(small: SmallModel, attention: str = "captured") -> Paged:
    paged = Paged(small, "dflash", attention)
    for row, prompt in PROMPTS.items():
        for start in range(0, len(prompt), CHUNK):
            paged.extend(row, prompt[start : start + CHUNK], start)
    return paged


def context(paged: Paged, ids: tuple[int, ...], j: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys and values of a draft layer, out of the target's hidden states behind the tapped layers 0 and 2."""
    dense = paged.dense
    hidden = dense.target(ids)
    features = hidden[0] @ dense.weights["dflash.tap.0"] + hidden[2] @ dense.weights["dflash.tap.2"]
    return dense.pairs(dense.norm(features, "dflash.context_norm"), f"dflash.layer.{j}", range(len(ids)))


def proposed(paged: Paged, ids: tuple[int, ...], known: int) -> list[int]:
    """What the draft proposes behind the cached ids and the known token."""
    dense, at = paged.dense, range(len(ids), len(ids) + BLOCK)
    mask = dense.weights["dflash.mask"]
    x = np.stack([dense.weights["embed"][known], *[mask] * (BLOCK - 1)])
    for j in range(2):
        x = dense.layer(f"dflash.layer.{j}", x, at, everything, context(paged, ids, j))
    return [int(paged.scores(row, "dflash.norm").argmax()) for row in x[1:]]


@pytest.mark.parametrize("attention", ["snapshot", "captured", "live"])
def test_prefill_leaves_the_context_of_every_position_in_the_draft_pools(small: SmallModel, attention: str) -> None:
    paged = prefilled(small, attention)
    for row, prompt in PROMPTS.items():
        for j in range(2):
            keys, values = context(paged, prompt, j)
            slots = paged.table[row, : len(prompt)]
            close(paged.state[f"draft_kv.{j}"][0][slots], keys)
            close(paged.state[f"draft_kv.{j}"][1][slots], values)
    assert paged.state["seq_lens"].tolist() == [1, 11, 0, 3], "row 0 is padding's"


@pytest.mark.parametrize("attention", ["snapshot", "captured", "live"])
def test_a_verify_proposes_and_scores_what_one_sequence_would(small: SmallModel, attention: str) -> None:
    paged = prefilled(small, attention)
    seen = paged.decoding(VERIFY, 1, 3)
    for b, (row, prompt) in enumerate(PROMPTS.items()):
        known = int(paged.scores(paged.dense.target(prompt)[-1][-1]).argmax())
        block = [known, *proposed(paged, prompt, known)]
        assert seen["tokens"][b].tolist() == block
        hidden = paged.dense.target((*prompt, *block))[-1][len(prompt) :]
        scores = paged.scores(hidden)
        close(seen["logits"][b], scores)
        right = [int(s.argmax()) for s in scores]
        assert seen["next_tokens"][b].tolist() == right
        accepted = next((q for q in range(BLOCK - 1) if right[q] != block[q + 1]), BLOCK - 1)
        assert seen["accept_lens"][b] == accepted + 1
        assert paged.state["relay"][row] == right[accepted]
        assert paged.state["seq_lens"][row] == len(prompt) + accepted + 1


def test_the_block_itself_goes_into_the_draft_pools_only_as_verified_context(small: SmallModel) -> None:
    """After the verify the pools hold features of the block, as of any other token: the next block can build on them."""
    paged = prefilled(small)
    seen = paged.decoding(VERIFY, 1)
    prompt, accepted = PROMPTS[1], int(seen["accept_lens"][0])
    ids = (*prompt, *(int(t) for t in seen["tokens"][0, :accepted]))
    for j in range(2):
        close(paged.state[f"draft_kv.{j}"][0][paged.table[1, : len(ids)]], context(paged, ids, j)[0])
    again = paged.decoding(VERIFY, 1)
    known = int(seen["last_token"][0])
    assert again["tokens"][0].tolist() == [known, *proposed(paged, ids, known)]


def test_a_block_with_nothing_before_it_sees_itself_alone_and_one_at_the_contexts_end_all_there_is(
    small: SmallModel,
) -> None:
    paged = prefilled(small)
    rng = np.random.default_rng(5)
    paged.state["draft_kv.0"][:] = rng.normal(0, 1, paged.state["draft_kv.0"].shape)
    attrs = {
        "weights": "dflash.layer.0", "pool": "draft_kv.0", "heads": 4, "kv_heads": 2, "head_dim": 8, "rope": plain(8, 10000.0),
        "eps": 1e-5,
    }  # fmt: skip
    block, prefix = f32(rng.normal(0, 1, (2, BLOCK, 32))), i32([0, CONTEXT + 1])
    positions = prefix[:, None] + i32(range(BLOCK))
    known = dict(paged.fixed) | {
        "draft_hidden": block, "positions": positions, "prefix_lens": prefix, "page_table": paged.table[[2, 1]]
    }  # fmt: skip
    given, _ = run("draft_layer", known, attrs=attrs)
    keys, values = paged.state["draft_kv.0"][:, paged.table[1]]
    for b, past in enumerate([None, (keys, values)]):
        expected = paged.dense.layer("dflash.layer.0", block[b], positions[b], everything, past)
        close(given["draft_hidden"][b], expected)


def test_the_known_token_of_a_block_is_kept_whatever_the_draft_makes_of_it() -> None:
    rng = np.random.default_rng(6)
    known = {
        "tokens": i32([[3, 0, 0]]), "draft_hidden": f32(rng.normal(0, 1, (1, 3, 8))), "dflash.norm": f32(np.ones(8)),
        "head": f32(rng.normal(0, 1, (8, 11))),
    }  # fmt: skip
    best = (known["draft_hidden"][0] @ known["head"]).argmax(-1)  # the norm scales a row and keeps its order
    assert best[0] != 3
    given, _ = run("draft_propose", known, attrs={"eps": 1e-5})
    assert given["tokens"].tolist() == [[3, int(best[1]), int(best[2])]]


def test_the_block_before_its_first_layer_and_the_sum_of_the_taps() -> None:
    rng = np.random.default_rng(7)
    embed, mask, weight = (f32(rng.normal(0, 1, s)) for s in ((9, 4), (4,), (4, 4)))
    given, _ = run("draft_block", {"tokens": i32([[2, 5, 5], [0, 1, 1]]), "embed": embed, "dflash.mask": mask})
    assert given["draft_hidden"].tolist() == [[e.tolist(), mask.tolist(), mask.tolist()] for e in embed[[2, 0]]]
    known = {"hidden": f32(rng.normal(0, 1, (1, 2, 4))), "dflash.tap.1": weight}
    first = run("draft_tap", known, attrs={"weight": "dflash.tap.1", "first": True})[0]["features"]
    close(first, known["hidden"] @ weight)
    known["features"] = f32(rng.normal(0, 1, (1, 2, 4)))
    later = run("draft_tap", known, attrs={"weight": "dflash.tap.1", "first": False})[0]["features"]
    close(later, known["features"] + first)
