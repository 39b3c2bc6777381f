"""Where the program called: a few of its own frames as one short text."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from pathlib import Path

import torch

import warfence.lanes

FRAMES = 3
_INSIDE = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
_PLUMBING = (warfence.lanes.__file__, contextlib.__file__, threading.__file__, functools.__file__)


@functools.cache
def _label(file: str) -> str:
    """How a file is called in a text. Empty: a frame in there says nothing to the user."""
    if file in _PLUMBING or file.startswith(_INSIDE) or file.startswith("<frozen"):
        return ""
    return os.sep.join(Path(file).parts[-2:])


def where() -> str:
    """The innermost frames outside torch, the watch and the lanes: `dir/file.py:12 in f < dir/file.py:30 in g`."""
    found: list[str] = []
    frame = sys._getframe(1)
    while frame is not None and len(found) < FRAMES:
        if label := _label(frame.f_code.co_filename):
            found.append(f"{label}:{frame.f_lineno} in {frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(found)
