"""A block without garbage collection: millions of small tuples make it go through all of them again and again.

And what it collects may be the graph of an earlier capture, whose end breaks the one that is going on.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """For code that makes no cycles, and much that stays or nothing that can wait."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
