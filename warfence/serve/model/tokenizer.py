"""Text to token ids and back, from a ``tokenizer.json``; and text as it grows, token by token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warfence.core.errors import InputError

if TYPE_CHECKING:
    import tokenizers

_HALF = "\ufffd"  # what a decoder shows for bytes that are no complete UTF-8 character


class Tokenizer:
    """A thin owner of one ``tokenizers.Tokenizer``. Safe to share: encoding and decoding change nothing."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        self._inner = inner

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Load ``path``, a ``tokenizer.json``. Raises ``InputError`` when it is absent or corrupt."""
        import tokenizers  # here, so that `warfence --help` does not pay for it

        if not path.is_file():
            raise InputError(f"'{path}' is absent; a model directory needs the tokenizer.json of its model")
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)))
        except Exception as cause:  # the library raises plain Exception
            raise InputError(f"'{path}' is no tokenizer file ({cause}); copy it again") from cause

    @property
    def vocab(self) -> int:
        """One more than the greatest token id."""
        return max(self._inner.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def encode(self, text: str) -> list[int]:
        """The token ids of ``text``, with the special tokens that ``tokenizer.json`` itself adds (a first bos, say)."""
        return list(self._inner.encode(text).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids`` without special tokens. Incomplete UTF-8 shows as U+FFFD."""
        return self._inner.decode(list(ids), skip_special_tokens=True)

    def token_id(self, token: str) -> int | None:
        """The id of one token by its spelling, or None."""
        return self._inner.token_to_id(token)

    def stream(self) -> TextStream:
        """A fresh stream for the tokens of one request."""
        return TextStream(self)


class TextStream:
    """Prints tokens as they come and never half of a character.

    The pieces of ``push`` and ``close``, joined, are ``decode`` of all tokens. Some decoders treat the first token
    differently (no leading space), so each decode starts one finished piece earlier than what is new.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._finished = 0  # ids[:finished] are printed; the decode window starts at the piece before them
        self._shown = 0  # characters of the current decode window that are printed

    def push(self, token: int) -> str:
        """Add one token. Returns the text that became certain, possibly empty."""
        self._ids.append(token)
        text = self._tokenizer.decode(self._ids)
        certain = text.rstrip(_HALF)
        piece = certain[self._shown :]
        self._shown = max(self._shown, len(certain))
        if certain == text and piece:
            self._ids = self._ids[self._finished :]
            self._finished = len(self._ids)
            self._shown = len(self._tokenizer.decode(self._ids))
        return piece

    def close(self) -> str:
        """End the stream. Returns what was held back: the bytes of a character that never became whole, as U+FFFD."""
        rest = self._tokenizer.decode(self._ids)[self._shown :]
        self._ids, self._finished, self._shown = [], 0, 0
        return rest
