"""A model as plain arrays: sizes, float32 weights, tokenizer. Light to import; reading happens in ``load_model``."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from warfence.core.errors import InputError
from warfence.serve.model.config import ModelConfig, from_hf, token_ids
from warfence.serve.model.tokenizer import Tokenizer
from warfence.serve.model.weights import Weights, file_sha256, load_weights, verify_checksums, weight_files

__all__ = ["ASSETS", "Model", "ModelConfig", "Tokenizer", "Weights", "load_model"]

ASSETS = Path(__file__).parent / "assets"
"""The shipped model, itself a Hugging Face directory."""


@dataclass(slots=True)
class Model:
    """A loaded model. ``weights``: see ``warfence.serve.model.weights.shapes``; treat the arrays as read-only.

    ``sha256`` is the digest of the weight file; with several shards, the digest of their joined digests.
    """

    config: ModelConfig
    weights: Weights = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    path: Path
    sha256: str


def load_model(path: Path | str | None = None) -> Model:
    """Load a Hugging Face directory of the Llama or Mistral architecture; None loads the shipped model.

    Needs ``config.json``, ``*.safetensors`` and ``tokenizer.json``; verifies ``SHA256SUMS`` where there is one.
    Raises ``InputError`` with a remedy for whatever is absent, damaged or not supported.
    """
    directory = ASSETS if path is None else Path(path)
    if not directory.is_dir():
        raise InputError(
            f"'{directory}' is no directory; give a Hugging Face model directory, or none for the shipped one"
        )
    raw = _json(directory / "config.json")
    verify_checksums(directory)
    name = directory.resolve().name if path is not None else str(raw.get("name", "warfence"))
    config = _with_generation_eos(from_hf(raw, name), directory)
    tokenizer = Tokenizer.load(directory / "tokenizer.json")
    if tokenizer.vocab > config.vocab:
        raise InputError(
            f"'{directory}': tokenizer.json has token ids up to {tokenizer.vocab - 1}, but the model knows"
            f" {config.vocab} tokens; take both files from the same model"
        )
    weights = load_weights(directory, config, tied=bool(raw.get("tie_word_embeddings", False)))
    return Model(config, weights, tokenizer, directory, _digest(weight_files(directory)))


def _with_generation_eos(config: ModelConfig, directory: Path) -> ModelConfig:
    """Add the stop tokens of ``generation_config.json``: chat models list more there than in ``config.json``."""
    path = directory / "generation_config.json"
    if not path.exists():
        return config
    more = token_ids(_json(path).get("eos_token_id"), "eos_token_id", config.name)
    return replace(config, eos_ids=tuple(dict.fromkeys(config.eos_ids + more)))


def _digest(files: list[Path]) -> str:
    digests = [file_sha256(path) for path in files]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(
            f"'{path}' is absent; give a Hugging Face model directory (config.json, *.safetensors, tokenizer.json)"
        )
    try:
        value = json.loads(path.read_bytes())
    except ValueError as cause:
        raise InputError(f"'{path}' is no JSON ({cause}); copy the file again") from cause
    if not isinstance(value, dict):
        raise InputError(f"'{path}' is no JSON object; copy the file again")
    return value
