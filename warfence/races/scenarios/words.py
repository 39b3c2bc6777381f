"""One line of a scenario file as words with columns, and errors that say line, column, what was expected and seen."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import NamedTuple

from warfence.core.errors import InputError
from warfence.races.scenarios.expression import PRODUCTS, SUMS, Binary, Expression, Named, Number

DIGITS = 18  # of a number: longer ones are a slip
_WORD = re.compile(r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<number>\d+)|(?P<sign>\.\.|//|[\[\](){},:=%*+-])|(?P<other>\S))")


class ScenarioError(InputError):
    """A scenario text that cannot be read. line and column count from 1."""

    def __init__(self, file: str, line: int, column: int, message: str) -> None:
        self.line, self.column = line, column
        super().__init__(f"{file}, line {line}, column {column}: {message}")


class Word(NamedTuple):
    """kind: name, number, sign, other (no word of the language) or end."""

    kind: str
    text: str
    column: int


class Line:
    """The words of one line, read from left to right. note: its comment, without the sign."""

    def __init__(self, file: str, number: int, text: str) -> None:
        self.file, self.number = file, number
        code, _, note = text.partition("#")
        self.note = note.strip()
        self._words = [
            Word(found.lastgroup or "", found[found.lastgroup or 0], found.start(found.lastgroup or 0) + 1)
            for found in _WORD.finditer(code)
        ]
        self._words.append(Word("end", "the end of the line", len(code.rstrip()) + 1))
        self._at = 0

    @property
    def next(self) -> Word:
        return self._words[self._at]

    @property
    def empty(self) -> bool:
        return len(self._words) == 1

    def take(self, *texts: str) -> str:
        """The next word if it is one of these, else nothing."""
        if self.next.kind != "end" and self.next.text in texts:
            self._at += 1
            return self._words[self._at - 1].text
        return ""

    def need(self, *texts: str) -> str:
        """The next word, which has to be one of these."""
        return self.take(*texts) or self.fail(" or ".join(f"'{text}'" for text in texts), texts)

    def name(self, what: str, known: Iterable[str] | None = None) -> str:
        """A name; of a known set where one is given."""
        word = self.next
        names = None if known is None else tuple(known)
        if word.kind != "name" or (names is not None and word.text not in names):
            listed = "" if names is None else f" ({', '.join(names) or 'none is declared'})"
            self.fail(f"{what}{listed}", names or ())
        self._at += 1
        return word.text

    def expression(self, names: Collection[str]) -> Expression:
        """A sum of products of numbers, of these names, and of such sums in parentheses."""
        found = self._product(names)
        while sign := self.take(*SUMS):
            found = Binary(found, sign, self._product(names))
        return found

    def end(self) -> None:
        if self.next.kind != "end":
            self.fail("the end of the line")

    def fail(self, expected: str, near: Iterable[str] = ()) -> str:
        """Never returns: raises, with the nearest of the words that could stand here."""
        word = self.next
        seen = word.text if word.kind == "end" else f"'{word.text}'"
        close = get_close_matches(word.text, [*near], 1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise ScenarioError(self.file, self.number, word.column, f"expected {expected}, found {seen}{hint}")

    def _product(self, names: Collection[str]) -> Expression:
        found = self._factor(names)
        while sign := self.take(*PRODUCTS):
            found = Binary(found, sign, self._factor(names))
        return found

    def _factor(self, names: Collection[str]) -> Expression:
        if self.take("("):
            inner = self.expression(names)
            self.need(")")
            return inner
        if self.next.kind != "number":
            return Named(self.name("a number or a parameter", names))
        if len(self.next.text) > DIGITS:
            self.fail(f"a number of at most {DIGITS} digits")
        self._at += 1
        return Number(int(self._words[self._at - 1].text))
