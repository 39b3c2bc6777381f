"""Weights by neutral names, from a Hugging Face directory or at random.

Every matrix is used as ``x @ W``, so that a Hugging Face ``Linear`` (``x @ W.T``) is transposed once, at load.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from warfence.core.errors import InputError
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.files import weight_files
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
EXTRA_WEIGHTS = {
    "bq": "self_attn.q_proj.bias",
    "bk": "self_attn.k_proj.bias",
    "bv": "self_attn.v_proj.bias",
    "bo": "self_attn.o_proj.bias",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
    "b_gate": "mlp.gate_proj.bias",
    "b_up": "mlp.up_proj.bias",
    "b_down": "mlp.down_proj.bias",
}
"""Those that only some architectures have, with their Hugging Face names: biases, and norms of each head's query and key."""
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


def extra_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The shape of what a layer of this model has beside them: ``config.extras``. A draft's layers have none of it."""
    q, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    sizes = {
        "bq": q, "bk": kv, "bv": kv, "bo": config.hidden, "q_norm": config.head_dim, "k_norm": config.head_dim,
        "b_gate": config.ffn, "b_up": config.ffn, "b_down": config.hidden,
    }  # fmt: skip
    return {name: (sizes[name],) for name in config.extras}


def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The name and shape of every weight of ``config``, in the order of use."""
    layer = layer_shapes(config) | extra_shapes(config)
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
            centre = np.float32(
                not name.rpartition(".")[2].startswith("b")
            )  # a norm is about one, a bias about nothing
            weights[name] = centre + np.float32(0.1) * noise
        else:
            scale = 1.0 if name == "embed" else shape[0] ** -0.5
            weights[name] = np.float32(scale) * noise
    return weights


def load_weights(directory: Path, config: ModelConfig, tied: bool = False) -> Weights:
    """Load the Hugging Face tensors of ``directory`` as float32, C-contiguous, under the neutral names of ``shapes``.

    ``tied`` (``tie_word_embeddings``): where only one of ``embed`` and ``head`` is stored, the other is its transpose; where
    both are, both are used, for the file knows better than the flag (as ``transformers`` 5 has it).
    Raises ``InputError`` for a corrupt file, a missing, doubled, unknown or misshapen tensor.
    """
    stored: Weights = {}
    for path in weight_files(directory):
        for name, tensor in read_safetensors(path).items():
            if name in stored:
                raise InputError(f"'{directory}': tensor '{name}' is in two files; keep one set of *.safetensors")
            stored[name] = tensor
    top = {_HF_TOP[name] for name in ("embed", "head")}
    if tied and len(top & stored.keys()) == 1:  # Hugging Face keeps both as [vocab, hidden]
        there = next(iter(top & stored.keys()))
        stored |= dict.fromkeys(top, stored[there])
    weights: Weights = {}
    for name, shape in shapes(config).items():
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
            f"'{directory}': tensors that a decoder of this config.json does not use: {', '.join(unknown[:5])}"
        )
    return weights


def hf_name(name: str) -> str:
    """The Hugging Face name of a neutral weight name."""
    if name in _HF_TOP:
        return _HF_TOP[name]
    _, index, part = name.split(".")
    return f"model.layers.{index}.{EXTRA_WEIGHTS.get(part) or f'{_HF_LAYER[part]}.weight'}"


def _take(stored: Weights, name: str, directory: Path) -> F32Array:
    if name not in stored:
        raise InputError(f"'{directory}': tensor '{name}' is missing from the *.safetensors; copy every shard")
    return stored.pop(name)
