"""What `config.json` may say, and what the message is when it says something else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from warfence.core.errors import InputError
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.hf_config import from_hf

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
QWEN = LLAMA | {"architectures": ["Qwen2ForCausalLM"], "sliding_window": 16, "max_window_layers": 3}
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


def test_what_an_architecture_assumes_where_the_config_is_silent() -> None:
    silent = {key: value for key, value in LLAMA.items() if key not in ("num_key_value_heads", "eos_token_id")}
    wide = silent | {"num_attention_heads": 8}
    assert (from_hf(silent).kv_heads, from_hf(silent).eos_ids) == (4, (2,))
    assert from_hf(wide | {"architectures": ["MistralForCausalLM"]}).kv_heads == 8
    qwen = from_hf(silent | {"architectures": ["Qwen3ForCausalLM"], "num_attention_heads": 32})
    assert (qwen.kv_heads, qwen.head_dim, qwen.eos_ids, qwen.extras) == (32, 128, (), ("q_norm", "k_norm"))
    assert from_hf(QWEN).extras == ("bq", "bk", "bv")
    assert from_hf(LLAMA | {"mlp_bias": True}).extras == ("b_gate", "b_up", "b_down")


@pytest.mark.parametrize(
    ("raw", "sliding", "window"),
    [
        (MISTRAL, (True,) * 4, 16),
        (MISTRAL | {"sliding_window": None}, (False,) * 4, None),
        (MIXED, (False, True, False, True), 16),
        (MIXED | {"architectures": ["MistralForCausalLM"]}, (False, True, False, True), 16),
        (MIXED | {"layer_types": ["full_attention"] * 4}, (False,) * 4, None),
        (MISTRAL | {"sliding_window": 128}, (False,) * 4, None),  # holds the whole context
        (MISTRAL | {"sliding_window": 127}, (True,) * 4, 127),
        (MIXED | {"sliding_window": 4096}, (False,) * 4, None),
        (LLAMA | {"sliding_window": 4096}, (False,) * 4, None),
        (LLAMA | {"architectures": ["MistralForCausalLM"]}, (False,) * 4, None),  # transformers assumes 4096
        (QWEN, (False,) * 4, None),
        (QWEN | {"use_sliding_window": True}, (False, False, False, True), 16),
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
        (
            {"architectures": ["MistralForCausalLM"], "attention_bias": True},
            "attention_bias is True; this architecture has",
        ),
        ({"architectures": ["Qwen3ForCausalLM"], "mlp_bias": True}, "mlp_bias is True; this architecture has none"),
        ({"quantization_config": {"bits": 4}}, "quantised weights (of an unnamed method) are not supported"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantised weights (fp8) are not supported, scales or not"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "config.json has no 'low_freq_factor'"),
        ({"rope_scaling": {"type": "linear", "factor": "2"}}, "factor is '2'; it must be a positive number"),
        (
            {"rope_scaling": {"type": "axial"}},
            "rope_type is 'axial'; allowed are default, linear, dynamic, llama3, yarn",
        ),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5; allowed is 1.0"),
        ({"rope_theta": float("inf")}, "rope_theta is inf; it must be a positive number"),
        (
            {"rope_scaling": {"type": "longrope", "original_max_position_embeddings": 32}},
            "cached keys keep the first ones, and the context is 128; set max_position_embeddings to 32",
        ),
        (
            {"rope_scaling": {"type": "longrope", "short_factor": [1.0]}},
            "must be a list of 4 numbers, one for each pair",
        ),
        (
            {"rope_scaling": {"type": "yarn", "factor": 2.0, "beta_fast": "x"}},
            "beta_fast is 'x'; it must be a positive number",
        ),
        (
            {"rope_scaling": {"type": "yarn", "factor": 2.0}, "rope_theta": 1.0},
            "of rope_type 'yarn' do not fit each other",
        ),
        (
            {"rope_scaling": {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 0}},
            "original_max_position_embeddings is 0; it must be at least 2",
        ),
        ({"rope_scaling": 2.0}, "rope_scaling is 2.0; allowed is an object or null"),
        (
            {"rope_parameters": {"full_attention": {"rope_theta": 1.0}}},
            "allowed is one rotary embedding for all layers",
        ),
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
        ({"sliding_window": 16}, "sliding_window is 16, which its architecture ignores"),
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
