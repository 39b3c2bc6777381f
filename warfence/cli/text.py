"""Generated text for a reader's eyes: what steers a terminal becomes visible, and long prompts are cut."""

from __future__ import annotations

_VISIBLE = {code: chr(0x2400 + code) for code in range(32)} | {127: "\u2421"}  # Unicode's pictures of control codes
_VISIBLE |= dict.fromkeys(range(128, 160), "\ufffd")
PROMPT_CHARACTERS = 120


def printable(text: str) -> str:
    """The text with every control character (line ends included) as a visible one. A model may generate any of them."""
    return text.translate(_VISIBLE)


def tail(text: str, most: int = PROMPT_CHARACTERS) -> str:
    """The end of a text, marked where it was cut: what a model continues is the end."""
    return text if len(text) <= most else "…" + text[1 - most :]


def common_start(first: str, second: str) -> str:
    """What both texts begin with."""
    pairs = zip(first, second, strict=False)
    return first[: next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))]
