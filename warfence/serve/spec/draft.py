"""A trained draft on disk: `config.json`, `model.safetensors` by the names that stages use, `SHA256SUMS`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warfence.core.errors import InputError
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.safetensors_file import read_safetensors
from warfence.serve.model.weights import Weights, verify_checksums

_SIZES = ("hidden", "vocab", "heads", "kv_heads", "head_dim", "ffn")
_LAYER = ("attn_norm", "wq", "wk", "wv", "wo", "mlp_norm", "w_gate", "w_up", "w_down")


@dataclass(frozen=True, slots=True)
class Draft:
    """block: tokens of a verify that it was trained for. taps: target layers whose output it takes (DFLASH)."""

    algorithm: str
    block: int
    layers: int
    taps: tuple[int, ...]
    weights: Weights = field(repr=False)
    path: Path | None = None


def load_draft(directory: Path, config: ModelConfig, algorithm: str) -> Draft:
    """Read and check a draft for one model and algorithm; InputError, with what was seen, where it does not fit."""
    where = f"draft '{directory}'"
    try:
        raw = json.loads((directory / "config.json").read_bytes())
    except OSError as cause:
        raise InputError(f"{where}: config.json cannot be read ({cause.strerror}); give a draft directory") from cause
    except ValueError as cause:
        raise InputError(f"{where}: config.json is no JSON ({cause}); copy the file again") from cause
    if not isinstance(raw, dict) or raw.get("algorithm") != algorithm:
        seen = raw.get("algorithm") if isinstance(raw, dict) else raw
        raise InputError(
            f"{where} is for the algorithm {seen!r}, not '{algorithm}'; give --spec {seen} or another draft"
        )
    _check_sizes(where, raw, config)
    block, layers = _count(where, raw, "block", 2), _count(where, raw, "layers", 1)
    taps = raw.get("taps", [])
    if not isinstance(taps, list) or not all(isinstance(t, int) and 0 <= t < config.layers for t in taps):
        raise InputError(f"{where}: taps is {taps!r}; allowed are layers of the model, 0 to {config.layers - 1}")
    if algorithm == "dflash" and not taps:
        raise InputError(f"{where}: taps is empty; a dflash draft takes the output of at least one layer of the model")
    if algorithm == "eagle" and layers != 1:
        raise InputError(f"{where}: layers is {layers}; an eagle draft has 1")
    verify_checksums(directory)
    weights: Weights = {}
    for path in sorted(directory.glob("*.safetensors")):
        weights |= read_safetensors(path)
    check_weights(where, weights, draft_shapes(algorithm, config, layers, tuple(taps)))
    return Draft(algorithm, block, layers, tuple(taps), weights, directory)


def draft_shapes(algorithm: str, config: ModelConfig, layers: int, taps: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The name and shape of every weight of a draft of these sizes."""
    d, q, kv, ffn = config.hidden, config.heads * config.head_dim, config.kv_heads * config.head_dim, config.ffn
    layer = dict(zip(_LAYER, [(d,), (d, q), (d, kv), (d, kv), (q, d), (d,), (d, ffn), (d, ffn), (ffn, d)], strict=True))
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


def _check_sizes(where: str, raw: Mapping[str, Any], config: ModelConfig) -> None:
    for name in _SIZES:
        if raw.get(name) != getattr(config, name):
            raise InputError(
                f"{where}: {name} is {raw.get(name)!r}, and that of model '{config.name}' is {getattr(config, name)}; a draft "
                f"fits only the model that it was trained for"
            )


def _count(where: str, raw: Mapping[str, Any], name: str, least: int) -> int:
    value = raw.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{where}: {name} is {value!r}; allowed is an integer from {least}")
    return value
