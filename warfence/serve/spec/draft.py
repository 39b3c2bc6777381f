"""A trained draft on disk: `config.json`, `model.safetensors` by the names that stages use, `SHA256SUMS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from warfence.core.errors import InputError
from warfence.host.documents import read_document
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.files import verify_checksums
from warfence.serve.model.safetensors_file import read_safetensors
from warfence.serve.model.weights import Weights, layer_shapes

_SIZES = ("hidden", "vocab", "heads", "kv_heads", "head_dim", "ffn")


@dataclass(frozen=True, slots=True)
class Draft:
    """block: tokens of a verify that it was trained for. taps: target layers whose output it takes (DFLASH)."""

    algorithm: str
    block: int
    layers: int
    taps: tuple[int, ...]
    weights: Weights = field(repr=False)
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class DraftConfig:
    """`config.json` of a draft. The sizes are those of the model that it was trained for; what is None is not said."""

    block: Annotated[int, Meta(ge=2)]
    layers: Annotated[int, Meta(ge=1)]
    algorithm: str | None = None
    taps: tuple[int, ...] = ()
    hidden: int | None = None
    vocab: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    ffn: int | None = None


def load_draft(directory: Path, config: ModelConfig, algorithm: str) -> Draft:
    """Read and check a draft for one model and algorithm; InputError, with what was seen, where it does not fit."""
    where = f"draft '{directory}'"
    seen = read_document(
        directory / "config.json", DraftConfig, "config of a draft", "give a draft directory", f"{where}: config.json"
    )
    if seen.algorithm != algorithm:
        raise InputError(
            f"{where} is for the algorithm {seen.algorithm!r}, not '{algorithm}'; give --spec {seen.algorithm} or another draft"
        )
    _check_sizes(where, seen, config)
    block, layers, taps = seen.block, seen.layers, seen.taps
    if not all(0 <= tap < config.layers for tap in taps):
        raise InputError(f"{where}: taps is {[*taps]}; allowed are layers of the model, 0 to {config.layers - 1}")
    if algorithm == "dflash" and not taps:
        raise InputError(f"{where}: taps is empty; a dflash draft takes the output of at least one layer of the model")
    if algorithm == "eagle" and layers != 1:
        raise InputError(f"{where}: layers is {layers}; an eagle draft has 1")
    verify_checksums(directory)
    weights: Weights = {}
    for path in sorted(directory.glob("*.safetensors")):
        weights |= read_safetensors(path)
    check_weights(where, weights, draft_shapes(algorithm, config, layers, taps))
    return Draft(algorithm, block, layers, taps, weights, directory)


def draft_shapes(algorithm: str, config: ModelConfig, layers: int, taps: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The name and shape of every weight of a draft of these sizes."""
    d, layer = config.hidden, layer_shapes(config)
    shapes: dict[str, tuple[int, ...]] = {f"{algorithm}.norm": (d,)}
    if algorithm == "dflash":
        shapes |= {"dflash.mask": (d,), "dflash.context_norm": (d,)} | {f"dflash.tap.{i}": (d, d) for i in taps}
    else:
        shapes[f"{algorithm}.fc"] = (2 * d, d)
    for j in range(layers):
        shapes |= {f"{algorithm}.layer.{j}.{name}": shape for name, shape in layer.items()}
    return shapes


def check_weights(where: str, weights: Weights, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """InputError unless there is exactly one weight of each shape."""
    if missing := sorted(shapes.keys() - weights.keys()):
        raise InputError(f"{where}: {missing[0]} is missing ({len(missing)} in all); copy model.safetensors again")
    if unknown := sorted(weights.keys() - shapes.keys()):
        raise InputError(f"{where}: {unknown[0]} is no weight of such a draft ({len(unknown)} in all)")
    for name, shape in shapes.items():
        if weights[name].shape != shape:
            raise InputError(
                f"{where}: {name} has shape {list(weights[name].shape)} and the model asks for {list(shape)}; the draft "
                f"was made for another model"
            )


def _check_sizes(where: str, seen: DraftConfig, config: ModelConfig) -> None:
    for name in _SIZES:
        if (size := getattr(seen, name)) != getattr(config, name):
            raise InputError(
                f"{where}: {name} is {size}, and that of model '{config.name}' is {getattr(config, name)}; a draft "
                f"fits only the model that it was trained for"
            )
