"""Text to tokens and back without loss."""

from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from warfence.core.errors import InputError
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


def test_padding_and_truncation_of_the_call_before_are_reset(tmp_path: Path) -> None:
    inner = tokenizers.Tokenizer.from_file(str(ASSETS / "tokenizer.json"))
    inner.enable_padding(length=24)
    inner.enable_truncation(3)
    inner.save(str(tmp_path / "tokenizer.json"))
    assert len(inner.encode(TEXTS[0]).ids) == 24, "the state is in force, so this test can fail"
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.encode(TEXTS[0]) == TOKENIZER.encode(TEXTS[0])
    assert loaded.notes == ("tokenizer.json has padding and truncation stored from a call, which is reset.",)
    assert TOKENIZER.notes == ()


def test_a_directory_with_sentencepiece_alone_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(b"\x0a")
    with pytest.raises(
        InputError, match=r"'tokenizer.model' is of sentencepiece, which is not read; write a tokenizer.json"
    ):
        Tokenizer.load(tmp_path)


def test_only_a_text_that_holds_an_id_beyond_the_model_is_refused(tmp_path: Path) -> None:
    inner = tokenizers.Tokenizer.from_file(str(ASSETS / "tokenizer.json"))
    inner.add_special_tokens(["[PAD]"])
    inner.save(str(tmp_path / "tokenizer.json"))
    loaded = Tokenizer.load(tmp_path, known=1024)
    assert loaded.notes == (
        "The tokenizer has ids up to 1024, and the model knows 1024: a prompt with such an id is refused.",
    )
    assert loaded.encode(TEXTS[0]) == TOKENIZER.encode(TEXTS[0])
    with pytest.raises(
        InputError, match=r"the token '\[PAD\]' has the id 1024, and the model knows 1024 tokens; leave it out"
    ):
        loaded.encode("and [PAD] more")
