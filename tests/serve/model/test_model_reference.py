"""The numpy reference against `transformers`, and against itself: a cache changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from warfence.core.errors import InputError
from warfence.serve.model import ASSETS, load_model
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.hf_config import from_hf
from warfence.serve.model.reference import ReferenceModel
from warfence.serve.model.weights import load_weights, random_weights
from warfence.serve.sampling import SamplingParams

SIZES: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "eos_token_id": 2,
}
MIXED = ["full_attention", "sliding_attention", "full_attention"]
KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, {}),
    "llama, wide heads, tied": (
        transformers.LlamaConfig,
        transformers.LlamaForCausalLM,
        {"head_dim": 12, "tie_word_embeddings": True},
    ),
    "mistral": (transformers.MistralConfig, transformers.MistralForCausalLM, {"sliding_window": 5}),
    "mistral, no window": (transformers.MistralConfig, transformers.MistralForCausalLM, {"sliding_window": None}),
    "ministral, mixed layers": (
        transformers.MinistralConfig,
        transformers.MinistralForCausalLM,
        {"sliding_window": 5, "layer_types": MIXED, "head_dim": 8},
    ),
}
IDS = [int(token) for token in np.random.default_rng(0).integers(0, 97, 40)]


def save(kind: str, path: Path, **how: Any) -> Any:
    """Save a model of random weights, far from small so that an error in any part shows; return it."""
    config_class, model_class, changes = KINDS[kind]
    torch.manual_seed(0)
    model = model_class(config_class(**SIZES | changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3 + (parameter.ndim == 1))
    model.save_pretrained(path, **how)
    return model


def load(path: Path) -> ReferenceModel:
    raw = json.loads((path / "config.json").read_text())
    config = from_hf(raw, "tiny")
    return ReferenceModel(config, load_weights(path, config, raw.get("tie_word_embeddings", False)))


def hf_logits(model: Any, ids: list[int]) -> Any:
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float().numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_logits_agree_with_transformers(kind: str, tmp_path: Path) -> None:
    expected = hf_logits(save(kind, tmp_path), IDS)
    seen = load(tmp_path).logits(IDS)
    assert seen.dtype == np.float32
    assert np.abs(expected).max() > 3, "the premise: the logits are not all near zero"
    np.testing.assert_allclose(seen, expected, atol=1e-4, rtol=1e-5)


def test_the_window_matters_in_that_comparison(tmp_path: Path) -> None:
    model = save("mistral", tmp_path)
    edited = json.loads((tmp_path / "config.json").read_text()) | {"sliding_window": 6}
    (tmp_path / "config.json").write_text(json.dumps(edited))
    assert np.abs(load(tmp_path).logits(IDS) - hf_logits(model, IDS)).max() > 0.01


def test_several_shards(tmp_path: Path) -> None:
    model = save("llama", tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    np.testing.assert_allclose(load(tmp_path).logits(IDS), hf_logits(model, IDS), atol=1e-4, rtol=1e-5)


@pytest.mark.slow
def test_the_shipped_model_says_the_same_under_transformers() -> None:
    hf = transformers.AutoModelForCausalLM.from_pretrained(ASSETS, dtype=torch.float32).eval()
    assert type(hf).__name__ == "MinistralForCausalLM"
    model = load_model()
    ids = model.tokenizer.encode("And the captain of the host answered and said, As the LORD liveth, I will not")
    reference = ReferenceModel(model)
    mine = reference.generate(ids, 48, SamplingParams(), request=0, eos=False)
    everything = ids + mine.tokens
    assert len(everything) > 32, "the premise: longer than the window"
    np.testing.assert_allclose(reference.logits(everything), hf_logits(hf, everything), atol=1e-4, rtol=1e-5)
    theirs = hf.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=48, min_new_tokens=48, pad_token_id=0)
    assert min(mine.margins) > 1e-3
    assert theirs[0].tolist() == everything


TINY = ModelConfig("tiny", 32, 16, 2, 4, 2, 4, 24, (False, True), 4, 24, 10000.0, 1e-5, (5,), None)


@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(0.9, 0.8, seed=4)])
def test_a_cache_and_a_prompt_in_pieces_change_nothing(params: SamplingParams) -> None:
    reference = ReferenceModel(TINY, random_weights(TINY, 0))
    whole = reference.generate([1, 2, 3], 12, params, request=7, eos=False)
    # Generating from a longer prompt must go on with the same tokens: u depends on the position, not on the step.
    later = reference.generate([1, 2, 3, *whole.tokens[:5]], 7, params, request=7, eos=False)
    assert later.tokens == whole.tokens[5:]
    np.testing.assert_allclose(later.margins, whole.margins[5:], atol=1e-4)
    if params.temperature == 0:
        logits = reference.logits([1, 2, 3, *whole.tokens[:-1]])
        assert whole.tokens == logits[2:].argmax(axis=1).tolist()


def test_requests_and_seeds_differ() -> None:
    reference = ReferenceModel(TINY, random_weights(TINY, 0))
    texts = {
        tuple(reference.generate([1], 16, SamplingParams(2.0, 1.0, seed), request, eos=False).tokens)
        for seed in (0, 1)
        for request in (0, 1)
    }
    assert len(texts) == 4


def test_generation_ends_at_eos_at_the_limit_and_at_the_context() -> None:
    weights = random_weights(TINY, 0)
    weights["head"] = np.zeros_like(weights["head"])
    reference = ReferenceModel(TINY, weights)  # all logits equal: greedy says token 0 for ever
    assert reference.generate([1, 2], 4, SamplingParams(), 0).tokens == [0] * 4
    assert len(reference.generate([1, 2], 100, SamplingParams(), 0).tokens) == TINY.context - 2
    ending = ReferenceModel(ModelConfig(**{**fields(TINY), "eos_ids": (0,)}), weights)
    assert ending.generate([1, 2], 4, SamplingParams(), 0).tokens == [0]
    assert ending.generate([1, 2], 4, SamplingParams(), 0, eos=False).tokens == [0] * 4
    assert ending.generate([1, 2], 0, SamplingParams(), 0).tokens == []


def fields(config: ModelConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in ModelConfig.__slots__}


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "0 tokens; allowed are 1 to 23"),
        ([1] * 24, "24 tokens; allowed are 1 to 23"),
        ([1, 32], "token ids from 1 to 32; allowed are 0 to 31"),
        ([-1], "token ids from -1 to -1"),
    ],
)
def test_bad_prompts_are_named(ids: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ReferenceModel(TINY, random_weights(TINY, 0)).generate(ids, 1, SamplingParams(), 0)


def test_a_config_without_weights_is_refused() -> None:
    with pytest.raises(InputError, match="needs weights"):
        ReferenceModel(TINY)
