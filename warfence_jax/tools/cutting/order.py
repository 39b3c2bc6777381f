"""In which order the equations of a function run: as written, or with the shared reads as early as their operands allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jax.extend.core import JaxprEqn, Literal, Var

from warfence.parity.boundary import Operation
from warfence_jax.tools.cutting.operations import operations, reads
from warfence_jax.tools.cutting.trace import Traced

UNORDERED = ("IOEffect", "DebugEffect")  # the effects of callbacks that JAX promises no place


@dataclass(frozen=True, slots=True)
class Gain:
    """What hoisting moved. before, after: operations up to the last read, as written and hoisted.

    moved: those that ran before the last read and now run behind it. dropped: whose results nobody uses. kept: operations
    with an effect that no read passes.
    """

    before: int
    after: int
    moved: tuple[Operation, ...] = ()
    dropped: tuple[Operation, ...] = ()
    kept: tuple[Operation, ...] = ()

    def lines(self) -> list[str]:
        """The report."""
        said = [f"hoisted: {self.after} operations run up to the last read; as written {self.before} do"]
        said += [f"{op}: runs behind the reads now" for op in self.moved]
        said += [f"{op}: left out, nobody uses its results" for op in self.dropped]
        return [*said, *(f"{op}: has an effect, so the reads behind it stay there" for op in self.kept)]


def hoist(traced: Traced) -> tuple[tuple[JaxprEqn, ...], Gain]:
    """The equations with those first that the shared reads need, and the gain. Each half keeps its order.

    A read whose result nobody uses is left out. Equations with an effect keep their order among each other, and no read
    passes one, but for an unordered callback: JAX itself promises no place to that.
    """
    equations = traced.equations
    alive = _close(equations, {i for i, e in enumerate(equations) if e.effects}, _variables(traced.results))
    readers = {i for i in alive if reads(traced, equations[i])}
    last = max(readers, default=-1)
    kept = {i for i in alive if i < last and ordered(equations[i])}
    head = _close(equations, readers | kept, set())
    while missing := {
        i for i in alive - head if equations[i].effects and any(equations[j].effects for j in head if j > i)
    }:
        head = _close(equations, head | missing, set())
    said = operations(traced, equations)
    written = max((op.position for op in said if op.reads), default=-1) + 1
    gain = Gain(
        before=written,
        after=len(head),
        moved=tuple(said[i] for i in sorted(alive - head) if i < written),
        dropped=tuple(op for op in said if op.position not in alive),
        kept=tuple(said[i] for i in sorted(kept)),
    )
    return tuple(equations[i] for i in (*sorted(head), *sorted(alive - head))), gain


def ordered(eqn: JaxprEqn) -> bool:
    """Whether an equation has an effect that JAX keeps in order."""
    return any(type(effect).__name__ not in UNORDERED for effect in eqn.effects)


def _close(equations: Sequence[JaxprEqn], wanted: set[int], needed: set[Var]) -> set[int]:
    """The equations wanted, those that give the variables needed, and all that these need."""
    closed = set()
    needed = set(needed)
    for i in reversed(range(len(equations))):
        if i in wanted or needed.intersection(equations[i].outvars):
            closed.add(i)
            needed |= _variables(equations[i].invars)
    return closed


def _variables(atoms: Sequence[Var | Literal]) -> set[Var]:
    return {a for a in atoms if not isinstance(a, Literal)}
