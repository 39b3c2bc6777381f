"""`--model DIR`: greedy tokens of small Hugging Face checkpoints of every kind are those of `transformers` itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from warfence.core.backend import Backend
from warfence.serve.engine import Engine, EngineConfig
from warfence.serve.model import ASSETS, load_model
from warfence.serve.model.reference import ReferenceModel
from warfence.serve.requests import Request
from warfence.serve.sampling import SamplingParams

SHAPE: dict[str, Any] = {
    "vocab_size": 1024, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64, "initializer_range": 0.2, "eos_token_id": None,
}  # fmt: skip
ORIGINAL = {"original_max_position_embeddings": 16}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **ORIGINAL}
YARN = {"rope_type": "yarn", "factor": 4.0, **ORIGINAL}
SHORT = {"rope_type": "longrope", "short_factor": [1.0, 1.5, 2.0, 3.0], "long_factor": [4.0] * 4, "factor": 2.0}
SLIDING = {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
# name: architecture, attention kind that serves it, what its config says
KINDS: dict[str, tuple[str, str, Mapping[str, Any]]] = {
    "llama": ("Llama", "captured", {}),
    "llama tied": ("Llama", "snapshot", {"tie_word_embeddings": True}),
    "llama biases": ("Llama", "captured", {"attention_bias": True, "mlp_bias": True}),
    "llama3 rope": ("Llama", "captured", {"rope_parameters": {**LLAMA3, "rope_theta": 500.0}}),
    "linear rope": ("Llama", "snapshot", {"rope_parameters": {"rope_type": "linear", "factor": 2.0}}),
    "dynamic rope": ("Llama", "captured", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}),
    "yarn rope": ("Llama", "captured", {"rope_parameters": YARN}),
    "longrope": ("Llama", "captured", {"rope_parameters": {**SHORT, "original_max_position_embeddings": 64}}),
    "mistral": ("Mistral", "live", {"sliding_window": 5}),
    "mistral without": ("Mistral", "captured", {"sliding_window": 4096}),
    "ministral": (
        "Ministral", "rereading",
        {"sliding_window": 5, "layer_types": ["full_attention", "sliding_attention", "full_attention"]},
    ),
    "qwen2": ("Qwen2", "captured", {}),
    "qwen2 sliding": ("Qwen2", "live", SLIDING),
    "qwen3": ("Qwen3", "snapshot", {}),
    "qwen3 sliding": ("Qwen3", "composite", {**SLIDING, "attention_bias": True, "rope_parameters": YARN}),
}  # fmt: skip
PROMPTS = ("In the beginning", "And it came to pass in the evening, that")
NEW = 20


def checkpoint(kind: str, path: Path) -> list[list[int]]:
    """Make the directory, with the shipped tokenizer. Returns what transformers says to each prompt."""
    family, _, more = KINDS[kind]
    torch.manual_seed(7)
    config = getattr(transformers, f"{family}Config")(**SHAPE, **json.loads(json.dumps(more)))
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():  # what transformers starts at 0 or 1 must show in the tokens
            if weight.ndim == 1:
                weight.add_(0.2 * torch.randn_like(weight) if name.endswith("bias") else 0.1 * torch.randn_like(weight))
    model.save_pretrained(path)
    shutil.copyfile(ASSETS / "tokenizer.json", path / "tokenizer.json")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path / "tokenizer.json"))
    made = []
    for prompt in PROMPTS:
        ids = torch.tensor([tokenizer(prompt)["input_ids"]])
        out = model.generate(ids, do_sample=False, max_new_tokens=NEW, pad_token_id=0)
        made.append([int(token) for token in out[0, ids.shape[1] :]])
    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_tokens_agree_with_transformers(make_backend: Callable[..., Backend], kind: str, tmp_path: Path) -> None:
    expected = checkpoint(kind, tmp_path)
    model = load_model(tmp_path)
    prompts = [tuple(model.tokenizer.encode(prompt)) for prompt in PROMPTS]
    reference = ReferenceModel(model)
    assert [reference.generate(ids, NEW, SamplingParams(), 0).tokens for ids in prompts] == expected

    requests = [Request(i, ids, NEW) for i, ids in enumerate(prompts)]
    backend = make_backend()
    try:
        config = EngineConfig(attention=KINDS[kind][1], rows=2, chunk=16, extend_rows=1)
        with Engine(config, model.config, model.weights, backend) as engine:
            for _ in engine.warm_up():
                pass
            engine.run(requests)
    finally:
        backend.close()
    assert [request.output for request in requests] == expected


def test_the_kinds_differ_in_their_tokens(tmp_path: Path) -> None:
    """Else a variant that is read and not computed would pass above."""
    pairs = [("llama", other) for other in ("llama biases", "llama3 rope", "linear rope", "yarn rope", "longrope")]
    pairs += [("mistral", "mistral without"), ("qwen2", "qwen2 sliding")]
    told = {kind: checkpoint(kind, tmp_path / kind) for kind in {kind for pair in pairs for kind in pair}}
    assert not [pair for pair in pairs if told[pair[0]] == told[pair[1]]]
