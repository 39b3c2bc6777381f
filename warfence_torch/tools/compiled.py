"""Compiled functions run as they were written, for a while, and are compiled as before afterwards.

Under a dispatch mode torch runs no compiled code, and keeps to that for every function that it met there (seen with 2.13).
The stance `force_eager` keeps it from looking. It is one for the whole process, so those who want it are counted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_counting = threading.Lock()
_inside = 0
_stance: Any = None


@contextmanager
def as_written() -> Iterator[None]:
    """Until the last who entered has left, no compiled code runs, and nothing is compiled or given up."""
    global _inside, _stance
    with _counting:
        if _inside == 0:
            _stance = torch.compiler.set_stance("force_eager")
            _stance.__enter__()
        _inside += 1
    try:
        yield
    finally:
        with _counting:
            _inside -= 1
            if _inside == 0:
                _stance.__exit__(None, None, None)
                _stance = None
