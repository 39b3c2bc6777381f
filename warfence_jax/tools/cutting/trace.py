"""Traces a function into one flat list of equations, so that a cut may lie inside a nested call.

Calls that only group equations (`jit`, `custom_jvp`, `custom_vjp`, `remat`) are replaced by their equations, under fresh
variables: two calls may share one body. Loops and conditionals stay whole. So does a `jit` that was given shardings or
compiler options, and a `remat` that was differentiated: both mean something to the compiler.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax import Array
from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from jax.tree_util import PyTreeDef

from warfence.core.errors import InputError

source_info_util.register_exclusion(__file__)  # the caller's code is what an equation comes from, not this file

Atom = Var | Literal
BODY = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat2": "jaxpr",
    "checkpoint": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
}  # fmt: skip


def shape_and_dtype(atom: Atom) -> tuple[tuple[int, ...], Any]:
    """Of a value in a jaxpr. It is an array's; the type of `aval` says less."""
    aval: Any = atom.aval
    return tuple(aval.shape), aval.dtype


@dataclass(frozen=True, slots=True)
class Traced:
    """A function as equations.

    arguments: a variable for each leaf of its arguments, then one for each array of `shared_arrays`. names: theirs. shared:
    those that the scheduler owns. constants: arrays that the function closes over. template: a jaxpr to make others from.
    """

    name: str
    equations: tuple[JaxprEqn, ...]
    arguments: tuple[Var, ...]
    names: Mapping[Var, str]
    shared: frozenset[Var]
    constants: Mapping[Var, Any]
    results: tuple[Atom, ...]
    result_names: tuple[str, ...]
    template: Jaxpr
    own_tree: PyTreeDef  # of the function's own arguments
    tree: PyTreeDef  # with shared_arrays behind them
    result_tree: PyTreeDef


def trace(
    fn: Callable[..., Any], args: Sequence[Any], shared_argnums: Collection[int], shared_arrays: Sequence[Array]
) -> Traced:
    """Trace `fn(*args)`; args are pytrees of arrays, or of `ShapeDtypeStruct`s. InputError when it cannot be traced."""
    name = getattr(fn, "__name__", type(fn).__name__)
    try:
        closed, shapes = jax.make_jaxpr(fn, return_shape=True)(*args)
    except Exception as error:
        first = str(error).partition("\n")[0]
        raise InputError(
            f"cut of '{name}': it cannot be traced with these arguments ({type(error).__name__}: {first}); give a function "
            f"that jax.jit takes, arrays or ShapeDtypeStructs for every argument, and bind the rest with functools.partial"
        ) from error
    flat = _Flattening({id(a): Var(jax.typeof(a)) for a in shared_arrays})
    arguments = [Var(aval) for aval in closed.in_avals]
    results = flat.walk(closed, arguments, source_info_util.new_name_stack())
    names = dict(zip(arguments, _leaf_names(fn, args), strict=True))
    argnums = [i for i, arg in enumerate(args) for _ in jax.tree.leaves(arg)]
    shared = [v for v, i in zip(arguments, argnums, strict=True) if i in shared_argnums]
    lifted = list(flat.lifted.values())
    names |= {v: f"shared_arrays[{i}]" for i, v in enumerate(lifted)}
    return Traced(
        name=name,
        equations=tuple(flat.equations),
        arguments=(*arguments, *lifted),
        names=names,
        shared=frozenset([*shared, *lifted]),
        constants=flat.constants,
        results=tuple(results),
        result_names=tuple(f"result{jax.tree_util.keystr(p)}" for p, _ in jax.tree_util.tree_leaves_with_path(shapes)),
        template=closed.jaxpr,
        own_tree=jax.tree.structure(tuple(args)),
        tree=jax.tree.structure((*args, *shared_arrays)),
        result_tree=jax.tree.structure(shapes),
    )


class _Flattening:
    """Equations in order, with every variable renamed. lifted: variables for arrays by their id; never constants."""

    def __init__(self, lifted: Mapping[int, Var]) -> None:
        self.lifted = lifted
        self.equations: list[JaxprEqn] = []
        self.constants: dict[Var, Any] = {}
        self._variables: dict[int, Var] = {}  # of the constants, by their id

    def walk(self, closed: ClosedJaxpr, arguments: Sequence[Atom], scope: Any) -> list[Atom]:
        """Append the equations of one body, which is called with `arguments`. Returns its results."""
        jaxpr = closed.jaxpr
        known: dict[Var, Atom] = dict(zip(jaxpr.invars, arguments, strict=True))
        known |= {v: self._constant(v, value) for v, value in zip(jaxpr.constvars, closed.consts, strict=True)}

        def of(atoms: Sequence[Atom]) -> list[Atom]:
            return [self.lifted.get(id(a.val), a) if isinstance(a, Literal) else known[a] for a in atoms]

        for eqn in jaxpr.eqns:
            stack = scope + eqn.source_info.name_stack
            body = _body(eqn)
            if body is not None:
                given = self.walk(body, of(eqn.invars), stack)
            else:
                given = [Var(v.aval) for v in eqn.outvars]
                source = eqn.source_info.replace(name_stack=stack)
                self.equations.append(eqn.replace(invars=of(eqn.invars), outvars=given, source_info=source))
            known.update(zip(eqn.outvars, given, strict=True))
        return of(jaxpr.outvars)

    def _constant(self, variable: Var, value: Any) -> Var:
        if id(value) in self.lifted:
            return self.lifted[id(value)]
        mine = self._variables.setdefault(id(value), Var(variable.aval))
        self.constants[mine] = value
        return mine


def _body(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The body of a call that only groups equations; None for every other equation."""
    body = eqn.params.get(BODY.get(eqn.primitive.name, ""))
    placed = [s for key in ("in_shardings", "out_shardings") for s in eqn.params.get(key, ())]
    if any(type(s).__name__ != "UnspecifiedValue" for s in placed) or eqn.params.get("compiler_options_kvs"):
        return None
    if body is None or eqn.params.get("differentiated"):
        return None
    return body if isinstance(body, ClosedJaxpr) else ClosedJaxpr(body, ())


def _leaf_names(fn: Callable[..., Any], args: Sequence[Any]) -> list[str]:
    """A name for each leaf of the arguments: of the parameter, and the path inside."""
    try:
        parameters = [p.name for p in inspect.signature(fn).parameters.values() if p.kind is not p.VAR_POSITIONAL]
    except (TypeError, ValueError):  # some callables have no signature
        parameters = []
    named = [*parameters[: len(args)], *(f"argument {i}" for i in range(len(parameters), len(args)))]
    return [
        n + jax.tree_util.keystr(path)
        for n, arg in zip(named, args, strict=True)
        for path, _ in jax.tree_util.tree_leaves_with_path(arg)
    ]
