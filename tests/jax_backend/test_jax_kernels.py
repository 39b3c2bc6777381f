from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from warfence.core.errors import InputError, WarfenceError
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.host.rope import plain
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.reference import ReferenceModel
from warfence.serve.model.weights import random_weights
from warfence.serve.sampling import SamplingParams, choose
from warfence_jax.kernels import KERNELS

from .run_op import i32, normal, run

CONFIG = ModelConfig("one", 41, 16, 1, 4, 2, 4, 24, (False,), 4, 16, 10000.0, 1e-5, (1,), None)
SIZES = {"heads": 4, "kv_heads": 2, "head_dim": 4, "rope": plain(4, 10000.0), "eps": 1e-5}


def test_stage_inputs_takes_the_first_token_from_the_relay_where_asked() -> None:
    known = {
        "input_ids": i32([[5, 6], [7, 8]]), "from_relay": i32([1, 0]), "req_pool_indices": i32([2, 1]),
        "prefix_lens": i32([3, 0]), "relay": i32([0, 11, 12]),
    }  # fmt: skip
    given = run("stage_inputs", known, ("tokens", "positions"), state=("relay",))
    assert given["tokens"].tolist() == [[12, 6], [7, 8]]
    assert given["positions"].tolist() == [[3, 4], [0, 1]]
    assert given["relay"].tolist() == [0, 11, 12]


def test_page_table_and_swa_translate() -> None:
    table = i32([[0] * 6, [0] * 6, [3, 4, 5, 6, 7, 8]])
    swa = i32([[0, 0, 0, 0, 40, 50, 60, 70, 80]])  # slot 3 was evicted
    rows = i32([2])
    assert run("page_table", {REQ_TO_TOKEN: table, "req_pool_indices": rows}, ("page_table",))[
        "page_table"
    ].tolist() == [table[2].tolist()]
    known = {
        REQ_TO_TOKEN: table, FULL_TO_SWA: swa, "req_pool_indices": rows, "prefix_lens": i32([1]),
        "out_cache_loc": i32([[4, 5]]),
    }  # fmt: skip
    given = run("swa_translate", known, ("swa_table", "swa_out_cache_loc"), attrs={"window": 3})
    # Positions -1, 0, 1, 2: none, evicted, and two live ones.
    assert given["swa_table"].tolist() == [[0, 0, 40, 50]]
    assert given["swa_out_cache_loc"].tolist() == [[40, 50]]


@pytest.mark.parametrize("sliding", [False, True])
def test_embed_layer_and_logits_agree_with_the_reference(sliding: bool) -> None:
    config = replace(CONFIG, sliding=(sliding,))
    weights = random_weights(config, 5)
    ids, prefix, window = np.arange(2, 11), 6, 4
    pool = np.zeros((2, 32, 2, 4), np.float32)
    slots = i32(np.arange(20, 20 + 16))[::-1].copy() - 4  # scattered on purpose: slot = 31 - position
    attrs = {"weights": "layer.0", "pool": "kv.0", "window": window if sliding else None, **SIZES}
    for start, stop in ((0, prefix), (prefix, len(ids))):  # two chunks: the second attends over the cache of the first
        at = np.arange(start, stop)
        hidden = run("embed", {"tokens": i32([ids[at]]), "embed": weights["embed"]}, ("hidden",))["hidden"]
        seen = np.arange(start - window + 1, stop)
        page = {"page_table": i32([slots]), "out_cache_loc": i32([slots[at]])}
        swa = {"swa_table": i32([np.where(seen < 0, 0, slots[seen])]), "swa_out_cache_loc": i32([slots[at]])}
        known = {"hidden": hidden, "positions": i32([at]), "prefix_lens": i32([start]), "kv.0": pool,
                 **(swa if sliding else page), **{n: w for n, w in weights.items() if n.startswith("layer.0.")}}  # fmt: skip
        given = run("layer", known, ("hidden",), state=("kv.0",), attrs=attrs)
        hidden, pool = given["hidden"], given["kv.0"]
    known = {
        "hidden": hidden,
        "extend_lens": i32([len(ids) - prefix]),
        "norm": weights["norm"],
        "head": weights["head"],
    }
    logits = run("logits", known, ("logits",), attrs={"eps": 1e-5})["logits"]
    np.testing.assert_allclose(logits[0], ReferenceModel(config, weights).logits(ids)[-1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sampled", [False, True])
def test_sample_follows_the_rule(sampled: bool) -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(24, 17)).astype(np.float32) * 3
    logits[3] = 1.0  # all alike: the lowest index wins
    logits[4, :] = np.where(np.arange(17) % 2, 1.0, 2.0)
    temperature = np.where(np.arange(24) % 3 == 0, 0.0, rng.uniform(0.3, 2.0, 24)).astype(np.float32)
    top_p, draw = rng.uniform(0.05, 1.0, 24).astype(np.float32), rng.uniform(0, 1, 24).astype(np.float32)
    top_p[7], draw[8], draw[10] = 1e-6, 0.0, np.float32(1 - 2**-24)
    known = {"logits": logits, "temperature": temperature, "top_p": top_p, "uniform": draw[:, None]}
    given = run("sample", known, ("next_tokens", "margin"), attrs={"sampled": sampled})
    for i in range(24):
        params = SamplingParams(float(temperature[i]) if sampled else 0.0, float(top_p[i]))
        token, margin = choose(logits[i], params, float(draw[i]))
        assert abs(given["margin"][i] - margin) < 1e-6, f"row {i}"
        assert given["next_tokens"][i] == token or margin < 1e-6, f"row {i}"


@pytest.mark.slow
@pytest.mark.parametrize("sliding", [False, True])
def test_a_snapshot_that_is_longer_than_the_call_is_sliced_and_a_shorter_one_is_refused(sliding: bool) -> None:
    """A padded or piecewise call. The places beyond the call are not written: a slot there keeps what it holds."""
    weights = {
        n: w for n, w in random_weights(replace(CONFIG, sliding=(sliding,)), 5).items() if n.startswith("layer.0.")
    }
    table, place = ("swa_table", "swa_out_cache_loc") if sliding else ("page_table", "out_cache_loc")
    attrs = {"weights": "layer.0", "pool": "kv.0", "window": 4 if sliding else None, **SIZES}
    seen = [[0, 0, 0, 3, 4, 5, 6]] if sliding else [[3, 4, 5, 6, 0, 0, 0, 0]]
    known = {"hidden": normal(1, 1, 2, 16), "positions": i32([[0, 1]]), "prefix_lens": i32([0]), table: i32(seen),
             "kv.0": np.full((2, 8, 2, 4), 7.0, np.float32), **weights}  # fmt: skip

    def call(places: list[int]) -> dict[str, np.ndarray]:
        return run("layer", {**known, place: i32([places])}, ("hidden",), state=("kv.0",), attrs=attrs)

    exact, longer = call([3, 4]), call([3, 4, 5, 6])
    for name, array in exact.items():
        np.testing.assert_array_equal(longer[name], array)
    assert (longer["kv.0"][:, 5:] == 7).all()
    assert (longer["kv.0"][:, 3:5] != 7).all()
    with pytest.raises(WarfenceError, match=f"snapshot '{place}' holds 1 write locations a row and the call writes 2"):
        call([3])


def test_sample_of_a_vocabulary_of_one_has_an_infinite_margin() -> None:
    known = {"logits": np.zeros((1, 1), np.float32)}
    given = run("sample", known, ("next_tokens", "margin"), attrs={"sampled": False})
    assert (given["next_tokens"][0], given["margin"][0]) == (0, np.inf)


def test_relay_leaves_the_token_in_its_row() -> None:
    known = {"next_tokens": i32([9, 8]), "req_pool_indices": i32([2, 0]), "relay": i32([1, 1, 1])}
    assert run("relay", known, (), state=("relay",))["relay"].tolist() == [8, 1, 9]


def test_an_undeclared_read_names_stage_and_name() -> None:
    known = {REQ_TO_TOKEN: np.zeros((2, 4), np.int32), "req_pool_indices": i32([1])}
    with pytest.raises(WarfenceError, match=r"stage 'the page_table' uses 'req_to_token', which it does not declare"):
        run("page_table", known, ("page_table",), skip=(REQ_TO_TOKEN,))


def test_a_stage_that_gives_something_else_and_an_unknown_op_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WarfenceError, match=r"stage 'the embed' gave \['hidden'\] but declares \['other'\]"):
        run("embed", {"tokens": i32([[1]]), "embed": np.zeros((2, 2), np.float32)}, ("other",))
    with pytest.raises(InputError, match=r"stage 'the nap' has the op 'nap'; this backend knows: stage_inputs, "):
        run("nap", {}, ())
    assert "nap" not in KERNELS
