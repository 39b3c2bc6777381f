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
from warfence.core.backend import FORWARD, SCHEDULE, Backend
from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.modes import ForwardMode
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.serve.model.config import from_hf
from warfence.serve.model.program import build, sliding_layers, state_specs, table_specs
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
    backend = make_backend()
    try:
        tables = backend.tables(table_specs(config, config.context, 2, 40))
        backend.load(load_weights(tmp_path, config, tied=False), state_specs(config, 2, 40, 40))
        program = build(
            config, make_attention("captured", sliding_layers(config)), ForwardMode.EXTEND, BatchLayout(1, CHUNK),
            sampled=False,
        )  # fmt: skip
        forward = backend.compile(replace(program, outputs=("logits",)))
        schedule, lane = backend.lane(SCHEDULE), backend.lane(FORWARD)
        cells = np.arange(TOKENS, dtype=np.int32)
        tables.write(schedule, REQ_TO_TOKEN, cells + config.context, cells + 1)
        if any(config.sliding):
            tables.write(schedule, FULL_TO_SWA, cells + 1, cells + 1)
        for launch, start in enumerate(range(0, TOKENS, CHUNK), start=1):
            lane.wait_lane(schedule)
            part = tuple(ids[start : start + CHUNK])
            slots = tuple(range(start + 1, start + 1 + len(part)))
            forward.load_batch(pack(program.layout, [BatchRow(1, start, part, slots, False, 0.0, 1.0, ())]), launch)
            forward.replay(launch)
            logits = forward.tail(launch).result()["logits"][0]
            np.testing.assert_allclose(logits, expected[start + len(part) - 1], atol=1e-4, rtol=1e-4)
    finally:
        backend.close()
