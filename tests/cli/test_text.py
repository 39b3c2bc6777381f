"""Generated text for a reader's eyes."""

from __future__ import annotations

import pytest

from warfence.cli.text import common_start, printable, tail


def test_nothing_that_steers_a_terminal_is_left() -> None:
    everything = "".join(chr(code) for code in range(256))
    shown = printable(everything)
    assert len(shown) == 256
    assert [c for c in shown if ord(c) < 32 or 127 <= ord(c) < 160] == []
    assert printable("a\x1b[31m\n") == "a␛[31m␊"
    assert printable("Cæsar’s […]") == "Cæsar’s […]"


def test_the_end_of_a_long_text_is_what_stays() -> None:
    assert tail("abcdef", 6) == "abcdef"
    assert tail("abcdefg", 6) == "…cdefg"


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [("", "", ""), ("ab", "abc", "ab"), ("abc", "ab", "ab"), ("axc", "ayc", "a"), ("x", "y", "")],
)
def test_what_two_texts_begin_with(first: str, second: str, common: str) -> None:
    assert common_start(first, second) == common
