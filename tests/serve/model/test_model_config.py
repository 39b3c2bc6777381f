"""What `config.json` may say, and what the message is when it says something else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from warfence.core.errors import InputError
from warfence.serve.model.config import ModelConfig, from_hf

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500.0,
    "bos_token_id": 1,
    "eos_token_id": [2, 3],
}
MISTRAL = LLAMA | {"architectures": ["MistralForCausalLM"], "sliding_window": 16}
MIXED = LLAMA | {
    "architectures": ["MinistralForCausalLM"],
    "layer_types": ["full_attention", "sliding_attention"] * 2,
    "sliding_window": 16,
}


def test_a_llama_config_in_the_old_form() -> None:
    assert from_hf(LLAMA, "tiny") == ModelConfig(
        name="tiny", vocab=64, hidden=32, layers=4, heads=4, kv_heads=2, head_dim=8, ffn=48, sliding=(False,) * 4,
        window=None, context=128, rope_theta=500.0, norm_eps=1e-5, eos_ids=(2, 3), bos_id=1,
    )  # fmt: skip


def test_the_new_form_of_the_rotary_parameters() -> None:
    new = {key: value for key, value in LLAMA.items() if key != "rope_theta"}
    assert from_hf(new | {"rope_parameters": {"rope_theta": 7.0, "rope_type": "default"}}).rope_theta == 7.0
    assert from_hf(new).rope_theta == 10000.0
    assert from_hf(LLAMA | {"rope_scaling": None}).rope_theta == 500.0


def test_defaults_and_nulls() -> None:
    short = LLAMA | {"num_key_value_heads": None, "head_dim": None, "eos_token_id": None, "bos_token_id": None}
    config = from_hf(short)
    assert (config.kv_heads, config.head_dim, config.eos_ids, config.bos_id) == (4, 8, (), None)
    assert from_hf(LLAMA | {"head_dim": 16, "eos_token_id": 5}).eos_ids == (5,)
    assert from_hf(LLAMA | {"head_dim": 16}).head_dim == 16


@pytest.mark.parametrize(
    ("raw", "sliding", "window"),
    [
        (MISTRAL, (True,) * 4, 16),
        (MISTRAL | {"sliding_window": None}, (False,) * 4, None),
        (MIXED, (False, True, False, True), 16),
        (MIXED | {"architectures": ["MistralForCausalLM"]}, (False, True, False, True), 16),
        (MIXED | {"layer_types": ["full_attention"] * 4}, (False,) * 4, None),
    ],
)
def test_which_layers_slide(raw: dict[str, Any], sliding: tuple[bool, ...], window: int | None) -> None:
    config = from_hf(raw)
    assert (config.sliding, config.window) == (sliding, window)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "['GPT2LMHeadModel']; allowed is one of LlamaForCausalLM"),
        ({"architectures": None}, "architectures is None"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'; allowed is 'silu'"),
        ({"attention_bias": True}, "attention_bias is True; allowed is false"),
        ({"mlp_bias": True}, "mlp_bias is True"),
        ({"quantization_config": {"bits": 4}}, "quantised weights are not supported"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "rope_scaling is {'rope_type': 'llama3'"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "allowed is rope_type 'default'"),
        ({"rope_scaling": 2.0}, "rope_scaling is 2.0; allowed is an object or null"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1.0}}}, "allowed is rope_type 'default'"),
        ({"rope_theta": -1.0}, "rope_theta is -1.0; it must be a positive number"),
        ({"vocab_size": None}, "has no 'vocab_size'; it needs an integer there"),
        ({"hidden_size": "32"}, "hidden_size is '32'; it must be an integer"),
        ({"hidden_size": True}, "hidden_size is True; it must be an integer"),
        ({"num_hidden_layers": 0}, "layers is 0; it must be at least 1"),
        ({"num_attention_heads": 0}, "heads is 0; it must be at least 1"),
        ({"num_key_value_heads": 3}, "4 heads are not a multiple of 3 kv_heads"),
        ({"head_dim": 7}, "head_dim is 7; rotary embedding needs an even number"),
        ({"eos_token_id": 64}, "eos token 64 is outside the vocabulary of 64"),
        ({"eos_token_id": "2"}, "eos_token_id is '2'; allowed are an integer, a list of integers, or null"),
        ({"sliding_window": 16}, "sliding_window is 16, which LlamaForCausalLM ignores"),
        ({"architectures": ["MistralForCausalLM"]}, "sliding_window is 4096; allowed are 1 to the context, 128"),
        ({"architectures": ["MistralForCausalLM"], "sliding_window": 0}, "sliding_window is 0; allowed are 1"),
        ({"layer_types": ["full_attention"] * 3}, "3 layer types for 4 layers"),
        ({"layer_types": ["chunked_attention"] * 4}, "allowed is a list of full_attention, sliding_attention"),
        ({"layer_types": ["sliding_attention"] * 4}, "has sliding layers but no window"),
    ],
)
def test_what_is_refused_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as error:
        from_hf(LLAMA | change, "tiny")
    assert "model 'tiny'" in str(error.value)
