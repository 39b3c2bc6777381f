"""Text to token ids and back, from a ``tokenizer.json``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warfence.core.errors import InputError

if TYPE_CHECKING:
    import tokenizers


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
