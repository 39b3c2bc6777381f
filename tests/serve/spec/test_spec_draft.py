"""A draft on disk: read, checked against the model, and refused with what was seen where it does not fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.parity.suite.paged import BLOCK, LAYERS, TAPS, random_draft
from warfence.core.errors import InputError
from warfence.parity.small import SIZES, SmallModel, first_difference, serve
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.engine import Engine, EngineConfig
from warfence.serve.spec import get
from warfence.serve.spec.draft import Draft, draft_shapes, load_draft


class Shelf:
    """A directory with one draft for the small model, and what a test changes in it."""

    def __init__(self, path: Path, small: SmallModel, algorithm: str) -> None:
        self.path, self.config, self.algorithm = path, small.config, algorithm
        self.weights = dict(random_draft(small.config, algorithm).weights)
        sizes = {n: getattr(small.config, n) for n in ("hidden", "vocab", "heads", "kv_heads", "head_dim", "ffn")}
        self.raw: dict[str, Any] = {
            "algorithm": algorithm, "block": BLOCK, "layers": LAYERS[algorithm], "taps": [*TAPS[algorithm]], **sizes
        }  # fmt: skip
        self.write({})

    def write(self, change: Mapping[str, Any], weights: Mapping[str, np.ndarray | None] | None = None) -> None:
        """Put config.json and model.safetensors there; None takes a key or a weight away."""
        raw = {n: v for n, v in (self.raw | dict(change)).items() if v is not None}
        (self.path / "config.json").write_text(json.dumps(raw))
        kept = {n: w for n, w in (self.weights | dict(weights or {})).items() if w is not None}
        save_file(kept, self.path / "model.safetensors")

    def load(self) -> Draft:
        return load_draft(self.path, self.config, self.algorithm)


@pytest.fixture(params=["dflash", "eagle"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path, small: SmallModel) -> Shelf:
    return Shelf(tmp_path, small, request.param)


@pytest.fixture
def dflash(tmp_path: Path, small: SmallModel) -> Shelf:
    return Shelf(tmp_path, small, "dflash")


def test_what_was_written_is_read(shelf: Shelf) -> None:
    draft = shelf.load()
    assert (draft.algorithm, draft.block, draft.layers) == (shelf.algorithm, BLOCK, LAYERS[shelf.algorithm])
    assert draft.taps == TAPS[shelf.algorithm]
    assert draft.path == shelf.path
    assert draft.weights.keys() == shelf.weights.keys()
    assert all(np.array_equal(draft.weights[n], w) for n, w in shelf.weights.items())
    assert draft.weights.keys() == draft_shapes(shelf.algorithm, shelf.config, draft.layers, draft.taps).keys()


@pytest.mark.slow
def test_an_engine_takes_it(shelf: Shelf, small: SmallModel) -> None:
    config = EngineConfig(**SIZES)
    with Engine(config, small.config, small.weights, StrictBackend(), get(shelf.algorithm), shelf.load()) as engine:
        assert len([*engine.warm_up()]) == len(engine.wanted())
        requests, summary = serve(engine)
    assert first_difference(requests, small.expected[False]) is None
    assert summary.spec["rows"] > 0


def test_no_directory_or_no_config_is_told(small: SmallModel, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"draft '.*nowhere': config\.json cannot be read \(No such file.*give a draft"
    ):
        load_draft(tmp_path / "nowhere", small.config, "dflash")


def test_a_config_that_is_no_json_is_told(shelf: Shelf) -> None:
    (shelf.path / "config.json").write_text("{block: 4")
    with pytest.raises(InputError, match=r"config\.json is no JSON \(.*\); give a draft directory"):
        shelf.load()


@pytest.mark.parametrize("content", ["[1, 2]", "3", "null"])
def test_a_config_that_is_no_object_is_told(dflash: Shelf, content: str) -> None:
    (dflash.path / "config.json").write_text(content)
    with pytest.raises(
        InputError, match=r"config\.json is no config of a draft: it is .*; allowed is an object; give a"
    ):
        dflash.load()


@pytest.mark.parametrize("seen", ["eagle", None])
def test_a_draft_of_another_algorithm_is_told(dflash: Shelf, seen: str | None) -> None:
    dflash.write({"algorithm": seen})
    with pytest.raises(InputError, match=f"is for the algorithm {seen!r}, not 'dflash'; give --spec {seen} or another"):
        dflash.load()


@pytest.mark.parametrize("size", ["hidden", "vocab", "heads", "kv_heads", "head_dim", "ffn"])
def test_a_draft_of_another_models_sizes_is_told(shelf: Shelf, size: str) -> None:
    shelf.write({size: shelf.raw[size] + 2})
    own, other = shelf.raw[size], shelf.raw[size] + 2
    with pytest.raises(InputError, match=f"{size} is {other}, and that of model 'small' is {own}; a draft fits only"):
        shelf.load()


def test_a_config_without_sizes_is_told(shelf: Shelf) -> None:
    """No weight of a draft has the vocabulary in its shape, so the config must say it."""
    shelf.write({"vocab": None})
    with pytest.raises(InputError, match="vocab is None, and that of model 'small' is 97"):
        shelf.load()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block": 1}, "block is 1; allowed is an integer from 2"),
        ({"block": None}, "it has no 'block'"),
        ({"block": "4"}, "block is '4'; allowed"), ({"block": True}, "block is True; allowed"),
        ({"block": 4.0}, r"block is 4\.0; allowed"),
        ({"layers": 0}, "layers is 0; allowed is an integer from 1"), ({"layers": None}, "it has no 'layers'"),
    ],
    ids=str,
)  # fmt: skip
def test_a_bad_count_is_told(shelf: Shelf, change: dict[str, Any], message: str) -> None:
    shelf.write(change)
    with pytest.raises(InputError, match=message):
        shelf.load()


@pytest.mark.parametrize("taps", [[0, 3], [-1]], ids=str)
def test_taps_outside_of_the_model_are_told(dflash: Shelf, taps: list[int]) -> None:
    dflash.write({"taps": taps})
    with pytest.raises(InputError, match=r"taps is .*; allowed are layers of the model, 0 to 2"):
        dflash.load()


@pytest.mark.parametrize(
    ("taps", "said"),
    [
        (["0"], r"taps\[0\] is '0'; allowed is an integer"), (2, "taps is 2; allowed is a list"),
        ([0.5], r"taps\[0\] is 0\.5; allowed is an integer"), ({"0": 1}, r"taps is \{'0': 1\}; allowed is a list"),
    ],
    ids=str,
)  # fmt: skip
def test_taps_that_are_no_layers_at_all_are_told(dflash: Shelf, taps: Any, said: str) -> None:
    dflash.write({"taps": taps})
    with pytest.raises(InputError, match=said):
        dflash.load()


def test_missing_unknown_and_misshapen_weights_are_told(shelf: Shelf) -> None:
    name = f"{shelf.algorithm}.layer.0.wk"
    shelf.write({}, {name: None, f"{shelf.algorithm}.norm": None})
    with pytest.raises(InputError, match=f"{name} is missing \\(2 in all\\); copy model"):
        shelf.load()
    shelf.write({}, {"surplus": np.zeros(3, np.float32)})
    with pytest.raises(InputError, match=r"surplus is no weight of such a draft \(1 in all\)"):
        shelf.load()
    shelf.write({}, {name: np.zeros((16, 32), np.float32)})
    with pytest.raises(InputError, match=rf"{name} has shape \[16, 32\] and the model asks for \[32, 16\]; the draft"):
        shelf.load()


def test_layers_and_taps_say_which_weights_there_must_be(dflash: Shelf) -> None:
    dflash.write({"layers": 3})
    with pytest.raises(InputError, match=r"dflash\.layer\.2\.attn_norm is missing \(9 in all\)"):
        dflash.load()
    dflash.write({"taps": [0]})
    with pytest.raises(InputError, match=r"dflash\.tap\.2 is no weight of such a draft"):
        dflash.load()


def test_without_any_weights_the_first_is_missing(shelf: Shelf) -> None:
    (shelf.path / "model.safetensors").unlink()
    with pytest.raises(InputError, match="is missing"):
        shelf.load()


def test_a_damaged_file_is_found_by_its_checksum(shelf: Shelf) -> None:
    digest = hashlib.sha256((shelf.path / "model.safetensors").read_bytes()).hexdigest()
    (shelf.path / "SHA256SUMS").write_text(f"{digest}  model.safetensors\n")
    assert shelf.load().block == BLOCK
    shelf.write({}, {f"{shelf.algorithm}.norm": np.full(32, 2, np.float32)})
    with pytest.raises(InputError, match=r"model\.safetensors' has SHA-256 .*SHA256SUMS says .*damaged or was changed"):
        shelf.load()


def test_a_dflash_draft_without_taps_is_told(dflash: Shelf) -> None:
    dflash.write({"taps": []}, {"dflash.tap.0": None, "dflash.tap.2": None})
    with pytest.raises(InputError, match="taps"):
        dflash.load()


def test_an_eagle_draft_of_more_than_one_layer_is_told(tmp_path: Path, small: SmallModel) -> None:
    shelf = Shelf(tmp_path, small, "eagle")
    second = {n.replace("layer.0", "layer.1"): w for n, w in shelf.weights.items() if ".layer.0." in n}
    shelf.write({"layers": 2}, second)
    with pytest.raises(InputError, match="layers"):
        shelf.load()
