"""What the caller said about the arguments, checked, and the function traced with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from jax import Array

from warfence.core.errors import InputError
from warfence_jax.tools.cutting.trace import Traced, trace


def argnums(what: str, given: int | Sequence[int], count: int, name: str) -> set[int]:
    """Positions of arguments as a set; a negative one counts from the end. InputError for one that there is not."""
    numbers = [index(i) for i in ([given] if isinstance(given, int) else given)]
    if wrong := [i for i in numbers if not -count <= i < count]:
        allowed = f"{-count} to {count - 1}" if count else "none, for there are no arguments"
        raise InputError(f"cut of '{name}': {what} names {wrong}; allowed are {allowed}")
    return {i % count for i in numbers}


def traced_with(
    fn: Callable[..., Any], args: Sequence[Any], shared_argnums: int | Sequence[int], shared_arrays: Sequence[Array]
) -> Traced:
    """Trace, and check what does not depend on how the function is cut. InputError."""
    if not isinstance(args, (tuple, list)):
        raise InputError(f"cut: args is a {type(args).__name__}; give a tuple with one entry for each argument")
    name = getattr(fn, "__name__", type(fn).__name__)
    shared = argnums("shared_argnums", shared_argnums, len(args), name)
    if not shared and not shared_arrays:
        raise InputError(f"cut of '{name}': no argument is shared; name some in shared_argnums or shared_arrays")
    if wrong := [type(a).__name__ for a in shared_arrays if not isinstance(a, Array)]:
        raise InputError(
            f"cut of '{name}': shared_arrays holds {', '.join(wrong)}; allowed are the jax.Arrays closed over"
        )
    traced = trace(fn, args, shared, shared_arrays)
    returned = [traced.names[v] for v in traced.arguments if v in traced.shared and any(v is r for r in traced.results)]
    if returned:
        raise InputError(
            f"cut of '{name}': it returns {', '.join(returned)} as it is, which is shared: whoever takes the result reads "
            f"the array after the function has ended, so there is no last read; return jnp.copy of it, or leave it out"
        )
    if any(hasattr(v.aval, "inner_aval") for e in traced.equations for v in (*e.invars, *e.outvars)):
        raise InputError(f"cut of '{name}': it uses mutable references; write it without jax.new_ref, and pass arrays")
    return traced
