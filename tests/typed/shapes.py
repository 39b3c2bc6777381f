"""What checks shapes while tests run: beartype, of arrays alone. `tests/conftest.py` has it wrap each function of the kernels.

Types of anything else are mypy's: a protocol is no class that an object could be asked for. Kernels alone, because a wrapped
call costs some microseconds: with every module wrapped the suite takes four times as long.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_args

from beartype import beartype
from jaxtyping import AbstractArray

F = TypeVar("F", bound=Callable[..., Any])


def has_shape(hint: Any) -> bool:
    """Whether a hint is an array with a shape, or has one inside, such as `dict[str, Int32[ndarray, " n"]]`."""
    if inspect.isclass(hint) and issubclass(hint, AbstractArray):
        return True
    return any(has_shape(one) for one in get_args(hint))


def check(function: F) -> F:
    """The function with its arrays checked. One without any is left as it is."""
    function.__annotations__ = {name: hint for name, hint in function.__annotations__.items() if has_shape(hint)}
    return beartype(function) if function.__annotations__ else function
