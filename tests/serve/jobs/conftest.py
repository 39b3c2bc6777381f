"""A tiny random model, and drafts for it, as directories: everything runs, fast, and its text makes no sense."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from warfence.serve.jobs.job import Job, prepare
from warfence.serve.jobs.options import ServeOptions
from warfence.serve.model import ASSETS
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.hf_config import from_hf
from warfence.serve.model.weights import hf_name, random_weights
from warfence.serve.spec.draft import draft_shapes

STRICT = "warfence.parity.strict.backend:StrictBackend"  # numpy: tests of what is the same on all backends run on it
CONFIG = {
    "architectures": ["MinistralForCausalLM"], "vocab_size": 1024, "hidden_size": 32, "intermediate_size": 48,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
    "max_position_embeddings": 128, "sliding_window": 8, "layer_types": ["full_attention", "sliding_attention"],
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "eos_token_id": 0,
}  # fmt: skip
PROMPTS = (
    "In the beginning",
    "And he said unto them,",
    "Blessed is",
    "The king and the fool",
    "Praise him",
    "Woe unto",
)


def write_model(path: Path, **changes: object) -> Path:
    """A Hugging Face directory with the shipped tokenizer and random weights."""
    raw = CONFIG | changes
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(raw))
    shutil.copyfile(ASSETS / "tokenizer.json", path / "tokenizer.json")
    weights = random_weights(from_hf(CONFIG), seed=3)
    save_file(
        {hf_name(n): np.ascontiguousarray(a if n == "embed" else a.T) for n, a in weights.items()},
        path / "model.safetensors",
    )
    return path


def sizes_of(config: ModelConfig) -> dict[str, int]:
    """What the config of a draft says of the model that it was made for."""
    return {n: getattr(config, n) for n in ("hidden", "vocab", "heads", "kv_heads", "head_dim", "ffn")}


def write_draft(path: Path, algorithm: str, /, model: ModelConfig | None = None, **changes: object) -> Path:
    """A draft of random weights, for the tiny model unless told otherwise, with blocks of four tokens."""
    config = model or from_hf(CONFIG)
    layers, taps = (1, (0, 1)) if algorithm == "dflash" else (1, ())
    raw = {"algorithm": algorithm, "block": 4, "layers": layers, "taps": taps, **sizes_of(config)} | changes
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(raw))
    rng = np.random.default_rng(1)
    shapes = draft_shapes(algorithm, config, layers, taps)
    weights = {n: (rng.standard_normal(s) * s[0] ** -0.5).astype(np.float32) for n, s in shapes.items()}
    save_file(weights, path / "model.safetensors")
    return path


@pytest.fixture(scope="session")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A draft of each algorithm that needs one, for the tiny model."""
    folder = tmp_path_factory.mktemp("drafts")
    return {name: write_draft(folder / name, name) for name in ("dflash", "eagle")}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model's directory."""
    return write_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """A file of six short prompts."""
    path = tmp_path / "prompts.txt"
    path.write_text("\n".join(PROMPTS) + "\n")
    return path


@pytest.fixture
def job(tiny: Path, prompts: Path) -> Job:
    """Six prompts on the tiny model, three rows, so that rows are recycled."""
    return prepare(ServeOptions(model=tiny, prompts=prompts, rows=3, max_new_tokens=12))
