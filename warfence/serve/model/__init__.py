"""A model as plain arrays: sizes, float32 weights, tokenizer. Light to import; reading happens in ``load_model``."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from warfence.core.errors import InputError
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.directory import Directory, read_directory
from warfence.serve.model.files import file_sha256, verify_checksums
from warfence.serve.model.tokenizer import Tokenizer
from warfence.serve.model.weights import Weights, load_weights

__all__ = ["ASSETS", "Directory", "Model", "ModelConfig", "Tokenizer", "Weights", "load_model", "read_directory"]

ASSETS = Path(__file__).parent / "assets"
"""The shipped model, itself a Hugging Face directory."""


@dataclass(slots=True)
class Model:
    """A loaded model. ``weights``: see ``warfence.serve.model.weights.shapes``; treat the arrays as read-only.

    ``sha256`` is the digest of the weight file; with several shards, the digest of their joined digests. ``notes``: sentences
    about what the directory says and is not done.
    """

    config: ModelConfig
    weights: Weights = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    path: Path
    sha256: str
    notes: tuple[str, ...] = ()


def load_model(path: Path | str | None = None) -> Model:
    """Load a Hugging Face directory of an architecture of ``hf_config.ARCHITECTURES``; None loads the shipped model.

    Needs ``config.json``, ``*.safetensors`` and ``tokenizer.json``; verifies ``SHA256SUMS`` where there is one.
    Raises ``InputError`` with a remedy for whatever is absent, damaged or not supported.
    """
    directory = ASSETS if path is None else Path(path)
    if not directory.is_dir():
        raise InputError(
            f"'{directory}' is no directory; give a Hugging Face model directory, or none for the shipped one"
        )
    verify_checksums(directory)
    found = read_directory(directory, named=path is None)
    weights = load_weights(directory, found.config, found.tied)
    return Model(found.config, weights, found.tokenizer, directory, _digest(list(found.files)), found.notes)


def _digest(files: list[Path]) -> str:
    digests = [file_sha256(path) for path in files]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
