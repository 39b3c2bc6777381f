"""Docstrings of warfence are plain sentences: what would be markup in them is not, but for `code`."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

MARKUP = re.compile(r"(`[^`]*`)(?=\w)|(`[^`]*`)|([*|\\]|(?<=\w)_(?=\W|$))")

NAMED_TUPLE = "Alias for field number"  # what Python says of each field
FIELDS = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*): ")


def escaped(line: str) -> str:
    """The line with every character of markup made literal, outside of backticks. `code`s keeps its s."""
    return MARKUP.sub(lambda found: f"{found[1]}\\ " if found[1] else found[2] or f"\\{found[3]}", line)


def plain(lines: list[str]) -> list[str]:
    """The docstring as reStructuredText: what is indented stays as it is, as code; each field is a paragraph."""
    said: list[str] = []
    inside = False
    for line in lines:
        code = line.startswith("    ") or (inside and not line)
        if code and not inside:
            said += ["", ".. code-block:: text", ""]
        elif inside and not code:
            said += [""]
        if not code and (field := FIELDS.match(line)):  # `name: what it is` begins a paragraph
            said += ["", f"`{field[1]}`: {escaped(line[field.end() :])}"]
        else:
            said.append(line if code else escaped(line))
        inside = code
    return said


def process(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """autodoc hands over each docstring here."""
    lines[:] = [] if lines and lines[0].startswith(NAMED_TUPLE) else plain(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
