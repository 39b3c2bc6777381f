"""The uncut function as one executable, and what became of each donated argument beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
from jax import Array, Device
from jax.extend.core import Var
from jax.stages import Compiled

from warfence_jax.compiler import Compiler
from warfence_jax.tools.cutting.part import Part, aliased, described
from warfence_jax.tools.cutting.plan import fitting
from warfence_jax.tools.cutting.trace import Traced

REFUSED = "copied, although the uncut function keeps it in place"
UNFIT = "copied, as by the uncut function"


def uncut(
    fn: Callable[..., Any], traced: Traced, donated: Collection[Var], device: Device, compiler: Compiler
) -> Compiled:
    """Compile `fn` whole: it takes the leaves of its own arguments, and gives those of what it returns."""
    own = traced.arguments[: traced.own_tree.num_leaves]

    def run(*leaves: Array) -> list[Array]:
        return jax.tree.leaves(fn(*jax.tree.unflatten(traced.own_tree, leaves)))

    fit = fitting([v for v in own if v in donated], [v for v in traced.results if isinstance(v, Var)])
    numbers = [i for i, v in enumerate(own) if v in fit]
    return compiler.compile(f"{traced.name}/uncut", run, [described(v, device) for v in own], numbers)[0].get()


def donation(parts: Sequence[Part], traced: Traced, donated: Collection[Var], whole: Compiled) -> dict[str, str]:
    """Each donated argument and what became of it: the part that keeps it in place, or that it is copied."""
    kept = {v: f"in place in the {part.label}" for part in parts for v in part.aliased}
    wanted = aliased(whole, traced.arguments, traced.equations)
    return {traced.names[v]: kept.get(v, REFUSED if v in wanted else UNFIT) for v in traced.arguments if v in donated}
