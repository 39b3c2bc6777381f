"""Text to tokens and back without loss."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warfence.serve.model import ASSETS
from warfence.serve.model.tokenizer import Tokenizer

TOKENIZER = Tokenizer.load(ASSETS / "tokenizer.json")
TEXTS = ["In the beginning", " two  spaces\n\tand more ", "Cæsar’s — “naïve”", "🙂👩‍👩‍👧‍👦🇺🇳", "\U00010348\x00é", ""]


@pytest.mark.parametrize("text", TEXTS)
def test_examples_survive(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text


def test_the_end_token_is_silent() -> None:
    assert TOKENIZER.encode("<|endoftext|>") == [0]
    assert TOKENIZER.decode([0]) == ""
    assert TOKENIZER.vocab == 1024
