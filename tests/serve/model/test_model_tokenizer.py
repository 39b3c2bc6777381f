"""Text to tokens and back without loss, and never half of a character on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library
from tokenizers import decoders, models

from warfence.serve.model import ASSETS
from warfence.serve.model.tokenizer import Tokenizer

TOKENIZER = Tokenizer.load(ASSETS / "tokenizer.json")
TEXTS = ["In the beginning", " two  spaces\n\tand more ", "Cæsar’s — “naïve”", "🙂👩‍👩‍👧‍👦🇺🇳", "\U00010348\x00é", ""]


def streamed(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    stream = tokenizer.stream()
    return [*(stream.push(token) for token in ids), stream.close()]


@pytest.mark.parametrize("text", TEXTS)
def test_examples_survive(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    pieces = streamed(TOKENIZER, ids)
    assert "".join(pieces) == text
    assert not any("\ufffd" in piece for piece in pieces)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    assert "".join(streamed(TOKENIZER, ids)) == text


@given(st.lists(st.integers(0, 1023), max_size=40))
def test_any_tokens_stream_to_their_decoding(ids: list[int]) -> None:
    """Random tokens are mostly broken UTF-8: what a model with random weights says."""
    assert "".join(streamed(TOKENIZER, ids)) == TOKENIZER.decode(ids)


def test_an_emoji_of_four_tokens_is_printed_once_it_is_whole() -> None:
    ids = TOKENIZER.encode("🙂")
    assert len(ids) == 4, "the premise: this character takes several tokens"
    assert streamed(TOKENIZER, ids) == ["", "", "", "🙂", ""]
    assert streamed(TOKENIZER, ids[:3]) == ["", "", "", "\ufffd"]


def test_text_before_a_half_character_is_not_held_back() -> None:
    stream = TOKENIZER.stream()
    shown = [stream.push(token) for token in TOKENIZER.encode("of 🙂!")]
    assert shown == ["of", " ", "", "", "", "🙂", "!"]


def test_the_end_token_is_silent() -> None:
    end = TOKENIZER.token_id("<|endoftext|>")
    assert end == 0
    assert TOKENIZER.decode([end]) == ""
    assert TOKENIZER.vocab == 1024
    assert TOKENIZER.token_id("no such token") is None


def test_a_decoder_that_strips_the_first_space_keeps_the_others(tmp_path: Path) -> None:
    """Llama 2's kind: a leading space on every word, stripped at the start of a decode; bytes as `<0xE2>`."""
    words = ["▁in", "▁the", "s", "<0xE2>", "<0x98>", "<0x80>"]
    library = Library(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="s"))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    library.decoder = decoders.Sequence(steps)
    library.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.load(tmp_path / "tokenizer.json")
    ids = [0, 1, 2, 1, 3, 4, 5, 1]
    assert streamed(tokenizer, ids) == ["in", " the", "s", " the", "", "", "☀", " the", ""]
    assert tokenizer.decode(ids) == "in thes the☀ the"
