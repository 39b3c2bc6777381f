"""Methods that are replaced while a watch lasts, and put back after it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any


class Patches:
    """Wraps methods of classes and functions of modules. `restore` puts the originals back, last first."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def wrap(self, owner: Any, name: str, instead: Callable[..., Any]) -> None:
        """Calls of owner.name(...) become instead(original, ...)."""
        original = getattr(owner, name)
        own = name in vars(owner)

        @functools.wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return instead(original, *args, **kwargs)

        setattr(owner, name, wrapped)
        if own:
            self._stack.callback(setattr, owner, name, original)
        else:
            self._stack.callback(delattr, owner, name)

    def restore(self) -> None:
        self._stack.close()
