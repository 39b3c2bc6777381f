"""Loading a directory: every kind of damage gives one line with a remedy, never a traceback of the reader."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from warfence.core.errors import InputError
from warfence.serve.model import ASSETS, load_model, read_directory
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.safetensors_file import bfloat16_to_float32, read_safetensors
from warfence.serve.model.weights import hf_name, load_weights, random_weights, shapes

TINY = ModelConfig("tiny", 32, 16, 2, 4, 2, 4, 24, (False, True), 4, 64, 10000.0, 1e-5, (0,), None)


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    """A copy of the shipped model, without its checksums."""
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        shutil.copyfile(ASSETS / name, tmp_path / name)
    return tmp_path


def write(path: Path, header: object, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def rename_tensor(path: Path, old: str, new: str) -> None:
    assert len(old) == len(new), "the header must keep its length"
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode(), 1))


def test_every_type_is_widened_exactly(tmp_path: Path) -> None:
    values = np.array([[1.5, -2.0, 0.0], [0.15625, 3.0, -96.0]], np.float32)  # exact in all three types
    upper_half = (values.view(np.uint32) >> 16).astype(np.uint16)
    parts = [values.tobytes(), values.astype(np.float16).tobytes(), upper_half.tobytes()]
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for kind, part in zip(("F32", "F16", "BF16"), parts, strict=True):
        header[kind] = {"dtype": kind, "shape": [2, 3], "data_offsets": [at, at + len(part)]}
        at += len(part)
    read = read_safetensors(write(tmp_path / "a.safetensors", header, b"".join(parts)))
    assert sorted(read) == ["BF16", "F16", "F32"]
    for tensor in read.values():
        assert tensor.dtype == np.float32
        assert tensor.flags.c_contiguous
        np.testing.assert_array_equal(tensor, values)


def test_every_bfloat16_is_widened_as_torch_does() -> None:
    import torch

    bits = np.arange(2**16).astype(np.uint16)
    expected = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(bfloat16_to_float32(bits), expected)


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"{not json", "is corrupt: invalid JSON in header: key must be a string"),
        ([1], "is corrupt: invalid JSON in header: invalid type: sequence"),
        ({"a": {"dtype": "F32"}}, "is corrupt: invalid JSON in header: missing field `shape`"),
        ({"a": {**GOOD, "data_offsets": [0, 8, 9]}}, "is corrupt: invalid JSON in header"),
        ({"a": {**GOOD, "dtype": "I64", "shape": [1]}}, "tensor 'a' has type I64; allowed are F32, F16, BF16"),
        ({"a": {**GOOD, "shape": [3]}}, "is corrupt: invalid shape, data type, or offset for tensor"),
        ({"a": {**GOOD, "shape": [-1, -2]}}, "is corrupt"),
        ({"a": {**GOOD, "data_offsets": [8, 16]}}, "is corrupt: "),
    ],
)
def test_a_damaged_header_is_named(tmp_path: Path, header: object, message: str) -> None:
    path = write(tmp_path / "a.safetensors", header, bytes(8))
    with pytest.raises(InputError, match=re.escape(message)):
        read_safetensors(path)


@pytest.mark.parametrize("data", [b"", b"short", b"\xff" * 64])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.safetensors").write_bytes(data)
    with pytest.raises(InputError, match=r"copy (or download )?the file again"):
        read_safetensors(tmp_path / "a.safetensors")


def drop(name: str) -> Callable[[Path], None]:
    return lambda path: (path / name).unlink()


def put(name: str, text: str) -> Callable[[Path], None]:
    return lambda path: (path / name).write_text(text) and None


def index(*names: str) -> Callable[[Path], None]:
    """An index that names these files."""
    text = json.dumps({"weight_map": {f"tensor.{i}": name for i, name in enumerate(names)}})
    return put("model.safetensors.index.json", text)


def in_shards(*names: str) -> Callable[[Path], None]:
    """The same, with a second file that holds the model once more, or a tensor that no decoder has."""

    def make(path: Path) -> None:
        shutil.copyfile(path / "model.safetensors", path / "copy.safetensors")
        write(path / "bias.safetensors", {"q_proj.bias": GOOD}, bytes(8))
        index(*names)(path)

    return make


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            drop("config.json"),
            "config.json' cannot be read (No such file or directory); give a Hugging Face model directory",
        ),
        (drop("model.safetensors"), "holds no *.safetensors file"),
        (drop("tokenizer.json"), "tokenizer.json' is absent"),
        (put("config.json", "{"), "config.json' is no JSON"),
        (put("config.json", "[]"), "config.json' is no JSON object"),
        (put("generation_config.json", "[]"), "generation_config.json' is no JSON object"),
        (put("model.safetensors.index.json", "{}"), "index.json' has no 'weight_map' of tensor and file names"),
        (
            index("gone.safetensors"),
            "gone.safetensors' is named in model.safetensors.index.json but absent; copy every shard",
        ),
        (
            index("../model.safetensors"),
            "names 'model.safetensors'; allowed are *.safetensors files of the same directory",
        ),
        (put("tokenizer.json", "{}"), "tokenizer.json' is no tokenizer file"),
        (put("model.safetensors", "cut off"), "model.safetensors' is corrupt"),
        (
            lambda path: edit(path / "config.json", vocab_size=1000),
            "'model.embed_tokens.weight' has shape [1024, 192]; config.json asks for [1000, 192]",
        ),
        (
            lambda path: edit(path / "config.json", intermediate_size=500),
            "'model.layers.0.mlp.gate_proj.weight' has shape [512, 192]; config.json asks for [500, 192]",
        ),
        (
            lambda path: edit(path / "config.json", tie_word_embeddings=False),
            "tensor 'lm_head.weight' is missing from the *.safetensors; copy every shard",
        ),
        (
            lambda path: rename_tensor(path / "model.safetensors", "model.norm.weight", "model.mron.weight"),
            "tensor 'model.norm.weight' is missing",
        ),
        (in_shards("model.safetensors", "copy.safetensors"), "is in two files; keep one set of *.safetensors"),
        (
            in_shards("model.safetensors", "bias.safetensors"),
            "tensors that a decoder of this config.json does not use: q_proj.bias",
        ),
        (put("SHA256SUMS", "0" * 64 + "  config.json\n"), "but SHA256SUMS says 0000000000000000..."),
        (put("SHA256SUMS", "0" * 64 + "  gone.json\n"), "gone.json' is listed in SHA256SUMS but absent"),
        (put("SHA256SUMS", "nonsense\n"), "each must be a SHA-256, two spaces and a file name"),
        (put("SHA256SUMS", "0" * 64 + "  ../config.json\n"), "each must be a SHA-256, two spaces and a file name"),
    ],
)
def test_a_damaged_directory_is_named(model_dir: Path, damage: Callable[[Path], object], message: str) -> None:
    load_model(model_dir)  # whole before the damage
    damage(model_dir)
    with pytest.raises(InputError, match=re.escape(message)):
        load_model(model_dir)


def test_one_changed_byte_of_the_shipped_weights_is_found(model_dir: Path) -> None:
    shutil.copyfile(ASSETS / "SHA256SUMS", model_dir / "SHA256SUMS")
    shutil.copyfile(ASSETS / "tokenizer_config.json", model_dir / "tokenizer_config.json")
    load_model(model_dir)
    with (model_dir / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)[0]
        file.seek(-1, 2)
        file.write(bytes([last ^ 1]))
    with pytest.raises(InputError, match="damaged or was changed; install or copy the model again"):
        load_model(model_dir)


def test_a_path_that_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no directory"):
        load_model(tmp_path / "absent")


@pytest.mark.parametrize(("text", "ids"), [('{"eos_token_id": [7, 5]}', (7, 5)), ("{}", ()), (None, (0,))])
def test_stop_tokens_are_those_of_the_generation_config_where_there_is_one(
    model_dir: Path, text: str | None, ids: tuple[int, ...]
) -> None:
    if text is not None:
        (model_dir / "generation_config.json").write_text(text)
    assert read_directory(model_dir).config.eos_ids == ids


def test_the_index_decides_which_files_are_read(model_dir: Path) -> None:
    right = load_model(model_dir)
    (model_dir / "model.safetensors").rename(model_dir / "model-00001-of-00001.safetensors")
    index("model-00001-of-00001.safetensors")(model_dir)
    for other in ("consolidated.safetensors", "model.safetensors", "adapter_model.safetensors"):
        (model_dir / other).write_bytes(b"of another format")
    found = load_model(model_dir)
    assert (found.sha256, found.weights["head"].tolist()) == (right.sha256, right.weights["head"].tolist())
    assert found.notes == (
        "Not read, for the weights are in other files: adapter_model.safetensors, consolidated.safetensors, model.safetensors.",
    )


def test_without_an_index_the_one_file_of_that_name_is_read(model_dir: Path) -> None:
    (model_dir / "consolidated.safetensors").write_bytes(b"of another format")
    assert load_model(model_dir).sha256 == load_model().sha256


@pytest.mark.parametrize("stored", ["embed", "head", "both", "different"])
def test_tying_looks_at_what_is_stored(tmp_path: Path, stored: str) -> None:
    rng = np.random.default_rng(0)
    embed, other = (rng.standard_normal((32, 16)).astype(np.float32) for _ in range(2))
    tensors = {hf_name(n): np.zeros(s[::-1], np.float32) for n, s in shapes(TINY).items() if n not in ("embed", "head")}
    tensors |= {} if stored == "head" else {"model.embed_tokens.weight": embed}
    tensors |= {} if stored == "embed" else {"lm_head.weight": other if stored == "different" else embed}
    save_file(tensors, tmp_path / "model.safetensors")
    weights = load_weights(tmp_path, TINY, tied=True)
    np.testing.assert_array_equal(weights["embed"], embed)
    np.testing.assert_array_equal(weights["head"], (other if stored == "different" else embed).T)
    if stored in ("embed", "head"):
        with pytest.raises(InputError, match="is missing from the"):
            load_weights(tmp_path, TINY, tied=False)


def test_random_weights_have_every_shape_and_repeat() -> None:
    first, again, other = random_weights(TINY, 1), random_weights(TINY, 1), random_weights(TINY, 2)
    assert {name: value.shape for name, value in first.items()} == shapes(TINY)
    assert all(value.dtype == np.float32 and value.flags.c_contiguous for value in first.values())
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["head"], other["head"])
