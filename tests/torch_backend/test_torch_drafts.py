"""The ops of both draft models, against loops over rows, positions and heads in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

B, Q, K, SIZE, KV_HEADS, HEADS = 3, 4, 3, 4, 2, 4
Pair = tuple[np.ndarray, np.ndarray]  # key and value of one position, each [kv_heads, size]


def close(seen: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(seen, expected, rtol=2e-4, atol=2e-4)


def rms(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean() + 1e-5) * weight


def turn(x: np.ndarray, position: int) -> np.ndarray:
    """One head, its pairs (i, i + size/2) turned by position * theta ** (-2i / size)."""
    turned, half = np.zeros(SIZE), SIZE // 2
    for i in range(half):
        angle = position * 10000.0 ** (-2 * i / SIZE)
        turned[i] = x[i] * np.cos(angle) - x[i + half] * np.sin(angle)
        turned[i + half] = x[i + half] * np.cos(angle) + x[i] * np.sin(angle)
    return turned


def pair_of(x: np.ndarray, wk: np.ndarray, wv: np.ndarray, position: int) -> Pair:
    keys = (x @ wk).reshape(KV_HEADS, SIZE)
    return np.stack([turn(key, position) for key in keys]), (x @ wv).reshape(KV_HEADS, SIZE)


def own_pair(world: Any, w: str, x: np.ndarray, position: int) -> Pair:
    return pair_of(rms(x, world[f"{w}.attn_norm"]), world[f"{w}.wk"], world[f"{w}.wv"], position)


def one_layer(world: Any, w: str, x: np.ndarray, position: int, seen: list[Pair]) -> np.ndarray:
    """A pre-norm layer for one token that sees these keys and values."""
    queries = (rms(x, world[f"{w}.attn_norm"]) @ world[f"{w}.wq"]).reshape(HEADS, SIZE)
    mixed = []
    for h, query in enumerate(queries):
        kv = h // (HEADS // KV_HEADS)
        weight = np.array([np.exp(turn(query, position) @ key[kv] / np.sqrt(SIZE)) for key, _ in seen])
        mixed.append(sum(a * value[kv] for a, (_, value) in zip(weight / weight.sum(), seen, strict=True)))
    x = x + np.concatenate(mixed) @ world[f"{w}.wo"]
    y = rms(x, world[f"{w}.mlp_norm"])
    gate = y @ world[f"{w}.w_gate"]
    return x + (gate / (1 + np.exp(-gate)) * (y @ world[f"{w}.w_up"])) @ world[f"{w}.w_down"]


def cached(world: Any, pool: str, b: int, stop: int) -> list[Pair]:
    keys, values = world[pool]
    return [(keys[s], values[s]) for s in world["page_table"][b, :stop]]


def test_taps_add_up(run: Any, world: Any) -> None:
    tapped = world["hidden"].astype(np.float64) @ world["dflash.tap.1"]
    close(run("draft_tap, first")[0]["features"], tapped)
    close(run("draft_tap")[0]["features"], world["features"] + tapped)


def test_the_context_goes_into_every_draft_pool(run: Any, world: Any) -> None:
    _, after = run("draft_context")
    for j in range(2):
        expected = world[f"draft_kv.{j}"].copy()
        for b in range(B):
            for q in range(Q):
                c = rms(world["features"][b, q], world["dflash.context_norm"])
                w = f"dflash.layer.{j}"
                pair = pair_of(c, world[f"{w}.wk"], world[f"{w}.wv"], world["positions"][b, q])
                expected[:, world["out_cache_loc"][b, q]] = pair
        close(after[f"draft_kv.{j}"], expected)


def test_a_block_is_its_known_token_and_masks(run: Any, world: Any) -> None:
    given, _ = run("draft_block")
    for b in range(B):
        rows = [world["embed"][world["tokens"][b, 0]]] + [world["dflash.mask"]] * (Q - 1)
        np.testing.assert_array_equal(given["draft_hidden"][b], rows)


def test_a_block_sees_its_context_and_all_of_itself(run: Any, world: Any) -> None:
    """Row 1 has no context at all."""
    w, given = "dflash.layer.1", run("draft_layer")[0]["draft_hidden"]
    for b in range(B):
        block, positions = world["draft_hidden"][b], world["positions"][b]
        own = [own_pair(world, w, block[q], positions[q]) for q in range(Q)]
        seen = cached(world, "draft_kv.1", b, world["prefix_lens"][b]) + own
        for q in range(Q):
            close(given[b, q], one_layer(world, w, block[q], positions[q], seen))


def test_a_block_proposes_at_its_masks(run: Any, world: Any) -> None:
    given, _ = run("draft_propose")
    for b in range(B):
        best = [np.argmax(rms(world["draft_hidden"][b, q], world["dflash.norm"]) @ world["head"]) for q in range(1, Q)]
        assert given["tokens"][b].tolist() == [world["tokens"][b, 0], *best]


def test_what_a_launch_keeps_for_the_eagle(run: Any, world: Any) -> None:
    """Lengths 1, 2 and Q. A prefill knows all tokens but the last; a verify chose them all."""
    for verified in (False, True):
        _, after = run("eagle_keep, verified" if verified else "eagle_keep")
        expected = {n: world[n].copy() for n in after}
        for b, row in enumerate(world["req_pool_indices"]):
            n = world["lens"][b]
            following = [*world["tokens"][b, 1:], 0]
            following[n - 1] = world["next_tokens"][b]
            expected["eagle_hidden"][row, :Q] = world["hidden"][b]
            expected["eagle_tokens"][row, :Q] = world["input_ids"][b] if verified else following
            expected["eagle_lens"][row] = world["prefix_lens"][b], n
        for name, array in expected.items():
            np.testing.assert_array_equal(after[name], array, err_msg=name)


def test_a_warm_up_with_lengths_of_0_stays_inside(run: Any, world: Any) -> None:
    zero = np.zeros(B, np.int32)
    _, after = run("eagle_keep", {"lens": zero})
    assert np.isfinite(after["eagle_hidden"]).all()
    given, _ = run("eagle_propose", {"extend_lens": zero, "prefix_lens": zero})
    assert given["proposals"].shape == (B, K)


def test_the_eagle_reads_what_was_kept(run: Any, world: Any) -> None:
    rows = world["req_pool_indices"]
    world["eagle_lens"][rows] = [[5, 0], [0, 2], [10, 9]]  # lengths outside of 1..Q are clipped
    given, _ = run("eagle_inputs", {"eagle_lens": world["eagle_lens"]})
    assert given["prefix_lens"].tolist() == [5, 0, 10]
    assert given["extend_lens"].tolist() == [1, 2, Q]
    for b, row in enumerate(rows):
        assert given["positions"][b].tolist() == [(5, 0, 10)[b] + q for q in range(Q)]
        for q in range(Q):
            both = [world["embed"][world["eagle_tokens"][row, q]], world["eagle_hidden"][row, q]]
            close(given["hidden"][b, q], np.concatenate(both).astype(np.float64) @ world["eagle.fc"])


@pytest.mark.parametrize("seed", range(4))
def test_the_eagle_proposes_token_by_token(run: Any, world: Any, seed: int) -> None:
    """Row 1 stands at the start; the pool of row 2 ends past the context (its first new position is 10 + 4 of 12)."""
    w, count, rng = "eagle.layer.0", 5, np.random.default_rng(seed)
    # Small states and much attention: a token hangs on what the layer sees, and where from.
    changes = {
        "hidden": rng.normal(size=(B, Q, 16)).astype(np.float32) / 8,
        f"{w}.wq": 4 * world[f"{w}.wq"],
        f"{w}.wo": 4 * world[f"{w}.wo"],
        "draft_kv.0": 2 * world["draft_kv.0"],
    }
    world |= changes
    given = run("eagle_propose", changes, count=count)[0]["proposals"]
    for b in range(B):
        n = world["extend_lens"][b]
        first = world["prefix_lens"][b] + n
        seen, o = cached(world, "draft_kv.0", b, first), world["hidden"][b, n - 1].astype(np.float64)
        for k in range(count):
            token = int(np.argmax(rms(o, world["eagle.norm"]) @ world["head"]))
            assert given[b, k] == token, f"row {b}, proposal {k}"
            u = np.concatenate([world["embed"][token], o]) @ world["eagle.fc"]
            seen.append(own_pair(world, w, u, first + k))
            o = one_layer(world, w, u, first + k, seen)


def test_one_proposal_needs_no_layer(run: Any, world: Any) -> None:
    given, _ = run("eagle_propose", count=1)
    np.testing.assert_array_equal(given["proposals"], run("eagle_propose")[0]["proposals"][:, :1])


def test_proposals_are_kept_in_their_rows(run: Any, world: Any) -> None:
    _, after = run("keep_drafts", {"proposals": world["proposals"][:, :2]})
    expected = world["draft_tokens"]
    for b, row in enumerate(world["req_pool_indices"]):
        expected[row, :2] = world["proposals"][b, :2]
    np.testing.assert_array_equal(after["draft_tokens"], expected)
