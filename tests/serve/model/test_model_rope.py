"""Every variant of the rotary embedding gives the numbers of `transformers`, from the old form of the config and the new."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from warfence.host.rope import Rope
from warfence.serve.model.hf_config import from_hf

SIZES: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 512, "num_hidden_layers": 1, "num_attention_heads": 8, "intermediate_size": 48,
    "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 8192,
}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LONG = {"rope_type": "longrope", "short_factor": [1.0 + i / 8 for i in range(32)], "long_factor": [9.0] * 32}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {"rope_type": "default"},
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "llama3": {**LLAMA3, "original_max_position_embeddings": 2048},
    "llama3, the context its original": LLAMA3,
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048},
    "yarn, its own numbers": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048, "beta_fast": 24, "beta_slow": 2,
        "truncate": False, "attention_factor": 1.25,
    },
    "yarn, scales of its parts": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048, "mscale": 0.8, "mscale_all_dim": 0.5,
    },
    "longrope": {**LONG, "original_max_position_embeddings": 8192, "factor": 3.0},
    "longrope, its own factor": {**LONG, "original_max_position_embeddings": 8192, "attention_factor": 1.5},
}  # fmt: skip


def theirs(fields: dict[str, Any]) -> tuple[np.ndarray, float]:
    config = LlamaConfig(**SIZES, rope_parameters={**fields, "rope_theta": 500000.0})
    make = ROPE_INIT_FUNCTIONS.get(fields["rope_type"], LlamaRotaryEmbedding.compute_default_rope_parameters)
    frequencies, scale = make(config)
    return frequencies.numpy(), scale


def agree(rope: Rope, fields: dict[str, Any]) -> None:
    frequencies, scale = theirs(fields)
    np.testing.assert_allclose(rope.frequencies, frequencies, rtol=1e-6)  # theirs are rounded at every step
    np.testing.assert_allclose(rope.scale, scale, rtol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_new_form(variant: str) -> None:
    raw = {**SIZES, "architectures": ["LlamaForCausalLM"]}
    agree(from_hf({**raw, "rope_parameters": {**VARIANTS[variant], "rope_theta": 500000.0}}).rope, VARIANTS[variant])


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_old_form(variant: str) -> None:
    fields = {("type" if key == "rope_type" else key): value for key, value in VARIANTS[variant].items()}
    raw = {**SIZES, "architectures": ["LlamaForCausalLM"], "rope_theta": 500000.0, "rope_scaling": fields}
    agree(from_hf(raw).rope, VARIANTS[variant])


def test_no_two_kinds_give_the_same_numbers() -> None:
    """Else the comparisons above would not tell which one was computed. Within the context `dynamic` is the plain one."""
    made = {name: tuple(np.round(theirs(fields)[0], 9)) for name, fields in VARIANTS.items() if "," not in name}
    assert made.pop("dynamic") == made["default"]
    assert len(set(made.values())) == len(made)
