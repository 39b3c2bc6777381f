"""What each equation of a traced function reads of the shared arrays.

Every equation that takes a shared array reads it: JAX has no views, so a `reshape` is a read, and its result is a value
of its own. A conditional reads what a branch of it looks at. A loop reads all that it takes. Cells are those of a static
slice, else the whole array.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from os import sep
from pathlib import Path

from jax.extend import source_info_util
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

from warfence.parity.boundary import Access, Operation
from warfence_jax.tools.cutting.trace import Traced, shape_and_dtype

MOVES_NOTHING = {
    "optimization_barrier", "reshape", "squeeze", "expand_dims", "copy", "copy_p", "bitcast_convert_type",
}  # fmt: skip
FRAMES = 3  # of the caller's code, in `Operation.where`


def operations(traced: Traced, equations: Sequence[JaxprEqn]) -> list[Operation]:
    """One operation for each equation, in the order given."""
    return [
        Operation(
            position=i,
            name=eqn.primitive.name,
            stage=_stage(eqn),
            where=_where(eqn),
            reads=tuple(_access(traced, eqn, v) for v in reads(traced, eqn)),
        )
        for i, eqn in enumerate(equations)
    ]


def of_one_executable(traced: Traced, operations: Sequence[Operation]) -> list[Operation]:
    """The same where all is one executable: there the result of an operation that moves nothing may be the array's own memory,
    so whoever takes that result reads the array (XLA elides a barrier, a copy, a reshape)."""
    same: dict[Var, tuple[Access, ...]] = {}
    said = []
    for eqn, op in zip(traced.equations, operations, strict=True):
        through = tuple(a for v in eqn.invars if not isinstance(v, Literal) for a in same.get(v, ()))
        op = op._replace(reads=tuple(dict.fromkeys((*op.reads, *through))))
        if eqn.primitive.name in MOVES_NOTHING and op.reads:
            same |= dict.fromkeys(eqn.outvars, op.reads)
        said.append(op)
    return said


def reads(traced: Traced, eqn: JaxprEqn) -> list[Var]:
    """The shared arrays that an equation looks at, each once."""
    seen = [v for i, v in enumerate(eqn.invars) if not isinstance(v, Literal) and v in traced.shared and _looks(eqn, i)]
    return list(dict.fromkeys(seen))


def _looks(eqn: JaxprEqn, i: int) -> bool:
    """Whether an equation looks at its operand i."""
    if eqn.primitive.name != "cond" or i == 0:
        return True
    return any(_used(branch.jaxpr, branch.jaxpr.invars[i - 1]) for branch in eqn.params["branches"])


def _used(jaxpr: Jaxpr, variable: Var) -> bool:
    inside = (_looks(eqn, i) for eqn in jaxpr.eqns for i, v in enumerate(eqn.invars) if v is variable)
    return any(v is variable for v in jaxpr.outvars) or any(inside)


def _stage(eqn: JaxprEqn) -> str:
    """The outermost `jax.named_scope` around an equation. Transformations (`vmap`, `jvp`) are on the same stack."""
    scopes = [e.name for e in eqn.source_info.name_stack.stack if type(e).__name__ == "Scope"]
    return scopes[0] if scopes else ""


def _where(eqn: JaxprEqn) -> str:
    outermost_first = source_info_util.summarize(eqn.source_info, num_frames=FRAMES).splitlines()
    here = f"{Path.cwd()}{sep}"
    return " < ".join(line.removeprefix(here) for line in reversed(outermost_first))


def _access(traced: Traced, eqn: JaxprEqn, variable: Var) -> Access:
    shape, _ = shape_and_dtype(variable)
    begin, end = 0, prod(shape)
    if eqn.primitive.name == "slice":
        starts, limits = eqn.params["start_indices"], eqn.params["limit_indices"]
        if all(limit > start for start, limit in zip(starts, limits, strict=True)):
            steps = [prod(shape[d + 1 :]) for d in range(len(shape))]
            begin = sum(s * step for s, step in zip(starts, steps, strict=True))
            end = sum((limit - 1) * step for limit, step in zip(limits, steps, strict=True)) + 1
        else:
            end = 0
    return Access(traced.names[variable], begin, end)
