"""Weights by neutral names, from a Hugging Face directory or at random.

Every matrix is used as ``x @ W``, so that a Hugging Face ``Linear`` (``x @ W.T``) is transposed once, at load.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from warfence.core.errors import InputError
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.safetensors_file import F32Array, read_safetensors

Weights = dict[str, F32Array]

_HF_LAYER = {
    "attn_norm": "input_layernorm",
    "wq": "self_attn.q_proj",
    "wk": "self_attn.k_proj",
    "wv": "self_attn.v_proj",
    "wo": "self_attn.o_proj",
    "mlp_norm": "post_attention_layernorm",
    "w_gate": "mlp.gate_proj",
    "w_up": "mlp.up_proj",
    "w_down": "mlp.down_proj",
}
LAYER_WEIGHTS = tuple(_HF_LAYER)
_HF_TOP = {"embed": "model.embed_tokens.weight", "norm": "model.norm.weight", "head": "lm_head.weight"}


def layer_weights(name: str) -> tuple[str, ...]:
    """The names of the weights of one decoder layer, a model's or a draft's."""
    return tuple(f"{name}.{weight}" for weight in LAYER_WEIGHTS)


def layer_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every weight of one decoder layer of these sizes, in the order of use."""
    q, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    return {
        "attn_norm": (config.hidden,),
        "wq": (config.hidden, q),
        "wk": (config.hidden, kv),
        "wv": (config.hidden, kv),
        "wo": (q, config.hidden),
        "mlp_norm": (config.hidden,),
        "w_gate": (config.hidden, config.ffn),
        "w_up": (config.hidden, config.ffn),
        "w_down": (config.ffn, config.hidden),
    }


def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The name and shape of every weight of ``config``, in the order of use."""
    layer = layer_shapes(config)
    result: dict[str, tuple[int, ...]] = {"embed": (config.vocab, config.hidden)}
    for index in range(config.layers):
        result |= {f"layer.{index}.{name}": shape for name, shape in layer.items()}
    return result | {"norm": (config.hidden,), "head": (config.hidden, config.vocab)}


def random_weights(config: ModelConfig, seed: int) -> Weights:
    """Random float32 weights of ``config`` for tests: the same ``seed`` gives the same values on every machine."""
    generator = np.random.Generator(np.random.Philox(seed))
    weights: Weights = {}
    for name, shape in shapes(config).items():
        noise = generator.standard_normal(shape, dtype=np.float32)
        if len(shape) == 1:
            weights[name] = np.float32(1.0) + np.float32(0.1) * noise
        else:
            scale = 1.0 if name == "embed" else shape[0] ** -0.5
            weights[name] = np.float32(scale) * noise
    return weights


def weight_files(directory: Path) -> list[Path]:
    """The ``*.safetensors`` shards of ``directory`` by name. Raises ``InputError`` when there is none."""
    files = sorted(directory.glob("*.safetensors"))
    if not files:
        raise InputError(f"'{directory}' holds no *.safetensors file; give a Hugging Face model directory")
    return files


def load_weights(directory: Path, config: ModelConfig, tied: bool = False) -> Weights:
    """Load the Hugging Face tensors of ``directory`` as float32, C-contiguous, under the neutral names of ``shapes``.

    ``tied`` (``tie_word_embeddings``): ``head`` is a copy of ``embed.T`` and a stored ``lm_head`` is not used.
    Raises ``InputError`` for a corrupt file, a missing, doubled, unknown or misshapen tensor.
    """
    stored: Weights = {}
    for path in weight_files(directory):
        for name, tensor in read_safetensors(path).items():
            if name in stored:
                raise InputError(f"'{directory}': tensor '{name}' is in two files; keep one set of *.safetensors")
            stored[name] = tensor
    weights: Weights = {}
    for name, shape in shapes(config).items():
        if name == "head" and tied:
            stored.pop(_HF_TOP["head"], None)
            weights[name] = np.ascontiguousarray(weights["embed"].T)
            continue
        tensor = _take(stored, hf_name(name), directory)
        expected = shape[::-1] if name != "embed" else shape
        if tensor.shape != expected:
            raise InputError(
                f"'{directory}': tensor '{hf_name(name)}' has shape {list(tensor.shape)}; config.json asks for"
                f" {list(expected)}. Take both files from the same model"
            )
        weights[name] = np.ascontiguousarray(tensor if name == "embed" else tensor.T)
    # Old Llama files store the rotary table as a buffer; it follows from rope_theta.
    unknown = sorted(name for name in stored if not name.endswith("rotary_emb.inv_freq"))
    if unknown:
        raise InputError(
            f"'{directory}': tensors that a Llama or Mistral decoder does not use: {', '.join(unknown[:5])}"
        )
    return weights


def hf_name(name: str) -> str:
    """The Hugging Face name of a neutral weight name."""
    if name in _HF_TOP:
        return _HF_TOP[name]
    _, index, part = name.split(".")
    return f"model.layers.{index}.{_HF_LAYER[part]}.weight"


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify_checksums(directory: Path) -> None:
    """Check ``directory`` against its ``SHA256SUMS`` (the format of ``sha256sum``); without that file do nothing.

    Raises ``InputError`` naming the first file that is absent or differs.
    """
    sums = directory / "SHA256SUMS"
    if not sums.exists():
        return
    for line in sums.read_text(encoding="utf-8", errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        path = directory / name.removeprefix("*")
        if not name or path.parent != directory:
            raise InputError(f"'{sums}' has the line {line!r}; each must be a SHA-256, two spaces and a file name")
        if not path.is_file():
            raise InputError(f"'{path}' is listed in SHA256SUMS but absent; install or copy the model again")
        if (seen := file_sha256(path)) != digest:
            raise InputError(
                f"'{path}' has SHA-256 {seen[:16]}..., but SHA256SUMS says {digest[:16]}...:"
                " the file is damaged or was changed; install or copy the model again"
            )


def _take(stored: Weights, name: str, directory: Path) -> F32Array:
    if name not in stored:
        raise InputError(f"'{directory}': tensor '{name}' is missing from the *.safetensors; copy every shard")
    return stored.pop(name)
