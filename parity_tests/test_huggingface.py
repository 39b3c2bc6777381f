"""`--model DIR`: logits of Hugging Face models, computed by a backend's forward, agree with `transformers` itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from warfence.core.attention import make_attention
from warfence.core.backend import Backend
from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.modes import ForwardMode
from warfence.serve.fixture import Fixture
from warfence.serve.model.config import from_hf
from warfence.serve.model.program import build, sliding_layers
from warfence.serve.model.weights import load_weights

SHAPE = {
    "vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64,
}  # fmt: skip
KINDS = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, {}),
    "mistral": (transformers.MistralConfig, transformers.MistralForCausalLM, {"sliding_window": 5}),
}
CHUNK, TOKENS = 8, 21


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_logits_agree_with_transformers(make_backend: Callable[..., Backend], kind: str, tmp_path: Path) -> None:
    config_class, model_class, more = KINDS[kind]
    torch.manual_seed(3)
    model = model_class(config_class(**SHAPE, **more)).eval()
    model.save_pretrained(tmp_path)
    ids = [int(t) for t in np.random.default_rng(1).integers(0, SHAPE["vocab_size"], TOKENS)]
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0].numpy()

    config = from_hf(model.config.to_dict(), kind)
    assert any(config.sliding) is (kind == "mistral")
    attention = make_attention("captured", sliding_layers(config))
    program = build(config, attention, ForwardMode.EXTEND, BatchLayout(1, CHUNK), sampled=False)
    weights, context = load_weights(tmp_path, config, tied=False), config.context
    with Fixture.of_model(make_backend(), config, weights, context=context, rows=2, slots=context + 1) as fixture:
        fixture.fill_rows()
        forward = fixture.forward(replace(program, outputs=("logits",)))
        fixture.lane.wait_lane(fixture.schedule)
        for start in range(0, TOKENS, CHUNK):
            part = tuple(ids[start : start + CHUNK])
            row = BatchRow(1, start, part, tuple(range(start + 1, start + 1 + len(part))), False, 0.0, 1.0, ())
            logits = fixture.launch(forward, pack(program.layout, [row])).result()["logits"][0]
            np.testing.assert_allclose(logits, expected[start + len(part) - 1], atol=1e-4, rtol=1e-4)
