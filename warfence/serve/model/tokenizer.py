"""Text to token ids and back, from a ``tokenizer.json``; and conversations as text, by the model's own template."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warfence.core.errors import InputError

if TYPE_CHECKING:
    import tokenizers

FILE = "tokenizer.json"


class Tokenizer:
    """A thin owner of one ``tokenizers.Tokenizer``. Safe to share: encoding and decoding change nothing.

    ``known``: tokens that the model knows (None: all that there are). ``notes``: sentences about what the file says and is
    not done.
    """

    def __init__(self, inner: tokenizers.Tokenizer, known: int | None = None, notes: Sequence[str] = ()) -> None:
        self._inner, self.notes = inner, tuple(notes)
        self._known = self.vocab if known is None else known
        if self.vocab > self._known:
            beyond = f"The tokenizer has ids up to {self.vocab - 1}, and the model knows {self._known}"
            self.notes += (f"{beyond}: a prompt with such an id is refused.",)

    @classmethod
    def load(cls, path: Path, known: int | None = None) -> Tokenizer:
        """Load a ``tokenizer.json``, given as the file or as its directory.

        Padding and truncation that were in force when it was saved are switched off: they are of a call, and transformers
        resets them as well. Raises ``InputError`` when it is absent or corrupt.
        """
        import tokenizers  # here, so that `warfence --help` does not pay for it

        path = path / FILE if path.is_dir() else path
        if not path.is_file():
            if (path.parent / "tokenizer.model").is_file():
                raise InputError(
                    f"'{path}' is absent, and 'tokenizer.model' is of sentencepiece, which is not read; write a tokenizer.json"
                    f" with transformers: AutoTokenizer.from_pretrained({str(path.parent)!r}).save_pretrained(...)"
                )
            raise InputError(f"'{path}' is absent; a model directory needs the tokenizer.json of its model")
        try:
            inner = tokenizers.Tokenizer.from_file(str(path))
        except Exception as cause:  # the library raises plain Exception
            raise InputError(f"'{path}' is no tokenizer file ({cause}); copy it again") from cause
        stored = [name for name, state in (("padding", inner.padding), ("truncation", inner.truncation)) if state]
        inner.no_padding()
        inner.no_truncation()
        return cls(
            inner, known, [f"{FILE} has {' and '.join(stored)} stored from a call, which is reset."] if stored else ()
        )

    @property
    def vocab(self) -> int:
        """One more than the greatest token id."""
        return max(self._inner.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def encode(self, text: str, special: bool = True) -> list[int]:
        """The token ids of ``text``, with the special tokens that ``tokenizer.json`` itself adds (a first bos, say), unless
        ``special`` is False: a text of a chat template has them. ``InputError`` for an id that the model does not know."""
        ids = list(self._inner.encode(text, add_special_tokens=special).ids)
        if beyond := [i for i in ids if i >= self._known]:
            raise InputError(
                f"the token {self._inner.id_to_token(beyond[0])!r} has the id {beyond[0]}, and the model knows"
                f" {self._known} tokens; leave it out"
            )
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids`` without special tokens. Incomplete UTF-8 shows as U+FFFD."""
        return self._inner.decode(list(ids), skip_special_tokens=True)
