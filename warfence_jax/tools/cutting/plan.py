"""What each part of a cut function takes and gives, and which part takes over the memory of which argument."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from jax.extend.core import JaxprEqn, Literal, Var

from warfence_jax.tools.cutting.operations import reads
from warfence_jax.tools.cutting.trace import Atom, Traced, shape_and_dtype


@dataclass(frozen=True, slots=True)
class Plan:
    """One part: equations that become one executable.

    takes: arguments, constants and values of earlier parts. gives: values for later parts, and results of the function.
    blanks: shared arrays that an equation takes without looking; zeros stand in for them. donated: those of `takes` whose
    memory this part may take over.
    """

    equations: tuple[JaxprEqn, ...]
    takes: tuple[Var, ...]
    gives: tuple[Var, ...]
    blanks: tuple[Var, ...]
    donated: tuple[Var, ...] = ()


def plan(
    traced: Traced, groups: Sequence[Sequence[JaxprEqn]], donated: Collection[Var], *, split: bool = False
) -> list[Plan]:
    """A plan for each group of equations; the last one also gives the results that are arguments.

    A donated argument is donated once: to the last part that takes it, where a value that the part gives fits its memory,
    else to the last part of all, which then takes it for its memory alone. Values between parts are donated likewise.
    split: the last part runs on another device than the others, so it alone can keep an argument in place.
    """
    outside = (*traced.arguments, *traced.constants)
    looked = [{v for e in group for v in reads(traced, e)} for group in groups]
    inputs = [_unique(v for e in group for v in e.invars) for group in groups]
    results, last = set(_unique(traced.results)), len(groups) - 1
    plans: list[Plan] = []
    for i, group in enumerate(groups):
        loose = tuple(v for v in outside if v in results) if i == last else ()
        taken = {*inputs[i], *loose}
        blanks = tuple(v for v in outside if v in taken & traced.shared - looked[i])
        before = [v for j in range(i) for v in plans[j].gives]
        takes = tuple(v for v in (*outside, *before) if v in taken and v not in blanks)
        later = {v for vs in inputs[i + 1 :] for v in vs} | results
        gives = _unique(v for e in group for v in e.outvars if v in later)
        plans.append(Plan(tuple(group), takes, (*gives, *loose), blanks))
    return _donate(traced, plans, donated, split)


def fitting(donors: Iterable[Var], gives: Sequence[Var]) -> list[Var]:
    """The donors, in order, that find a value of their shape and type, each its own. JAX pairs them in this way."""
    free = Counter(shape_and_dtype(v) for v in gives)
    fit = []
    for v in donors:
        if free[shape_and_dtype(v)] > 0:
            free[shape_and_dtype(v)] -= 1
            fit.append(v)
    return fit


def _donate(traced: Traced, plans: Sequence[Plan], donated: Collection[Var], split: bool) -> list[Plan]:
    """The plans with `donated` filled in."""
    results = set(_unique(traced.results))
    arguments = [v for v in traced.arguments if v in donated]
    between = [v for p in plans for v in p.gives if v not in results]
    homeless: list[Var] = []
    done = []
    for i, p in enumerate(plans):
        last = i + 1 == len(plans)
        later = {v for q in plans[i + 1 :] for v in q.takes}
        if last:
            homeless += [v for v in arguments if v not in p.takes and not any(v in q.takes for q in plans)]
        donors = [v for v in (*arguments, *between) if v in p.takes and v not in later]
        mine = fitting([*donors, *(homeless if last else ())], p.gives) if last or not split else []
        homeless += [v for v in donors if v not in mine and v in arguments]
        takes = (*p.takes, *(v for v in mine if v not in p.takes))
        done.append(Plan(p.equations, takes, p.gives, p.blanks, tuple(mine)))
    return done


def _unique(atoms: Iterable[Atom]) -> tuple[Var, ...]:
    return tuple(dict.fromkeys(a for a in atoms if not isinstance(a, Literal)))
