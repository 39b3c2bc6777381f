"""Methods that are still to write: how a scaffold marks them, and how a check finds them.

A marked method has its duty as its docstring. Called, it says so; `still_to_write` lists all that are left.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from warfence.core.backend import Backend
from warfence.core.errors import WarfenceError

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Missing:
    """One method that is still to write, and what it must do."""

    method: str
    duty: str


class NotWritten(WarfenceError):
    """A method of a backend was called that nobody has written yet."""


def unwritten(method: Callable[P, R]) -> Callable[P, R]:
    """Mark a method as still to write. Its docstring is what it must do; take the mark off together with writing it."""

    @functools.wraps(method)
    def refuse(*args: P.args, **kwargs: P.kwargs) -> R:
        raise NotWritten(
            f"{method.__qualname__} is not written yet (`warfence backends check` lists all that are left). "
            f"What it must do: {_one_line(method)}"
        )

    refuse._still_to_write = True  # type: ignore[attr-defined]
    return refuse


def still_to_write(factory: Callable[..., Any]) -> list[Missing]:
    """All marked methods of the loaded modules of the factory's package, and what its class lacks of `Backend`."""
    package = factory.__module__.partition(".")[0]
    modules = [m for n, m in list(sys.modules.items()) if n == package or n.startswith(f"{package}.")]
    classes = {c: None for m in modules for c in vars(m).values() if inspect.isclass(c) and c.__module__ == m.__name__}
    found = [Missing(method.__qualname__, _one_line(method)) for c in classes for method in _marked(c)]
    if inspect.isclass(factory):
        for name, method in vars(Backend).items():
            if inspect.isfunction(method) and not name.startswith("_") and not hasattr(factory, name):
                found.append(Missing(f"{factory.__qualname__}.{name}", _one_line(method)))
    return found


def _marked(owner: type) -> Iterator[Callable[..., Any]]:
    for method in vars(owner).values():
        if getattr(method, "_still_to_write", False):
            yield method


def _one_line(method: Callable[..., Any]) -> str:
    return " ".join((inspect.getdoc(method) or "").split())
