"""Cuts a jittable function behind its last read of a shared array: two executables, of which only the first takes it.

PjRt holds an argument until the executable that took it has run, read or not. So a write that donates the array lands
once the head has run, while the rest still runs.

A shared array is one that the scheduler writes: the function only reads it. What JAX cannot see: a callback that reads a
shared array it closed over, instead of taking it as an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, Device
from jax.extend.core import JaxprEqn, Literal, Var

from warfence.backend import Marker
from warfence.boundary import Boundary, find
from warfence.errors import InputError
from warfence.fence import Ticket
from warfence_jax.compiler import Compiler, aliased_arguments
from warfence_jax.cutting.arguments import argnums, traced_with
from warfence_jax.cutting.compare import Comparison, compare
from warfence_jax.cutting.operations import operations
from warfence_jax.cutting.order import Gain, hoist
from warfence_jax.cutting.part import Part, Values, described
from warfence_jax.cutting.plan import fitting, plan
from warfence_jax.cutting.replay import Issued, issue
from warfence_jax.cutting.trace import Traced
from warfence_jax.lanes import JaxLane
from warfence_jax.tables import Tables
from warfence_jax.tokens import Record

ORDERS = ("program", "hoist")


class Cut:
    """A function in parts. `cut(*args)` runs them; arrays of `shared_arrays` are arguments behind the others.

    boundary: where the reads end, with every read. parts: the executables. gain: what hoisting moved (order="hoist").
    unread: shared arrays that the function does not read; no executable takes them.
    """

    def __init__(
        self, fn: Callable[..., Any], traced: Traced, equations: Sequence[JaxprEqn], donated: Collection[Var],
        device: Device, gain: Gain | None,
    ) -> None:  # fmt: skip
        self._fn, self._traced, self._donated, self._device = fn, traced, donated, device
        self._compiler = Compiler()
        self.gain = gain
        self.boundary: Boundary = find(operations(traced, equations))
        at = self.boundary.after.position + 1 if self.boundary.after is not None else 0
        groups = [g for g in (equations[:at], equations[at:]) if g] or [()]
        head = self.boundary.after is not None
        plans = plan(traced, groups, donated)
        labels = ("head", "rest") if head else ("rest",)
        self.parts = tuple(Part(traced, p, n, device, self._compiler) for p, n in zip(plans, labels, strict=False))
        read = {access.name for op in self.boundary.reads for access in op.reads}
        self.unread = tuple(n for v, n in traced.names.items() if v in traced.shared and n not in read)
        self._record = Record()
        self._marker = Marker(self.boundary.stage or "the last read")

    # -- running it

    def head(self, *args: Any) -> Values:
        """Run what takes the shared arrays, which may be donated to a write once this was called. Returns what is known
        then: give it to `rest`. Nothing runs where nothing is read."""
        values = self.values(args)
        return values if self._head is None else values | self._head(values)

    def rest(self, known: Values) -> Any:
        """Run what comes behind the boundary. Returns what the function returns."""
        for part in self.parts[self._head is not None :]:
            known = known | part(known)
        return self.result(known)

    def __call__(self, *args: Any) -> Any:
        return self.rest(self.head(*args))

    def replay(self, lane: JaxLane, launch: int, args: Sequence[Any], tables: Tables | None = None) -> Issued:
        """Issue the parts on a lane, as one launch. A shared array may be given as the `Version` that the tables captured."""
        issued, boundary = issue(self.parts, lane, launch, self.values(args), self.result, tables)
        self._record.arm(launch, boundary)
        self._marker.issued(launch, self._record)
        return issued

    def ticket(self, launch: int) -> Ticket:
        """The ticket of a launch, once that was issued: a write behind it lands when the head has run. FenceError before,
        and for any launch but the last one issued."""
        return self._marker.ticket(launch)

    # -- reports

    def lines(self) -> list[str]:
        """The report: the reads, where they end, what was moved, and what became of each donated argument."""
        said = [*self.boundary.lines(), *(self.gain.lines() if self.gain is not None else ())]
        said += [f"{name}: shared, but never read; no executable takes it" for name in self.unread]
        return [*said, *(f"{name}: donated, {became}" for name, became in self.donation.items())]

    @cached_property
    def donation(self) -> dict[str, str]:
        """Each donated argument and what became of it: the part that takes its memory over, or why none does.

        Read from the texts of the executables; blocks until they are compiled, and compiles the uncut function.
        """
        by = {v: f"in place in the {part.label}" for part in self.parts for v in part.aliased}
        uncut = {v for i, v in enumerate(self._traced.arguments) if i in aliased_arguments(self.uncut)}
        return {
            self._traced.names[v]: by.get(v, "copied, although the uncut function takes its memory over" if v in uncut
                                          else "copied, as by the uncut function")
            for v in self._traced.arguments if v in self._donated
        }  # fmt: skip

    @property
    def refused(self) -> tuple[str, ...]:
        """Donated arguments that the uncut function aliases with a result, and the cut one does not."""
        return tuple(name for name, became in self.donation.items() if became.startswith("copied, although"))

    def compare(self, *args: Any) -> Comparison:
        """Run the uncut and the cut function on copies of the arguments. Callbacks run twice."""
        return compare(self.uncut, self, args, self._traced)

    @cached_property
    def uncut(self) -> jax.stages.Compiled:
        """The function in one executable, which takes its arguments flat; compiled when first asked for."""
        traced = self._traced
        own = traced.arguments[: traced.own_tree.num_leaves]

        def run(*leaves: Array) -> list[Array]:
            return jax.tree.leaves(self._fn(*jax.tree.unflatten(traced.own_tree, leaves)))

        donate = fitting([v for v in own if v in self._donated], [v for v in traced.results if isinstance(v, Var)])
        numbers = [i for i, v in enumerate(own) if v in donate]
        arguments = [described(v, self._device) for v in own]
        return self._compiler.compile(f"{traced.name}/uncut", run, arguments, numbers)[0].get()

    # -- inside

    @property
    def _head(self) -> Part | None:
        return self.parts[0] if self.boundary.after is not None else None

    def values(self, args: Sequence[Any]) -> Values:
        """The leaves of the arguments by their variables. InputError when they are not those of the cut."""
        leaves, tree = jax.tree.flatten(tuple(args))
        if tree != self._traced.tree:
            raise InputError(
                f"cut of '{self._traced.name}': called with {tree}, but it was cut for {self._traced.tree}; "
                f"arrays of shared_arrays come behind the other arguments"
            )
        return {**self._traced.constants, **dict(zip(self._traced.arguments, leaves, strict=True))}

    def result(self, known: Values) -> Any:
        """What the function returns, of all that is known."""
        flat = [jnp.asarray(v.val, v.aval.dtype) if isinstance(v, Literal) else known[v] for v in self._traced.results]
        return jax.tree.unflatten(self._traced.result_tree, flat)


def cut(
    fn: Callable[..., Any], args: Sequence[Any], *, shared_argnums: int | Sequence[int] = (),
    shared_arrays: Sequence[Array] = (), donate_argnums: int | Sequence[int] = (), order: str = "program",
    device: Device | None = None,
) -> Cut:  # fmt: skip
    """Cut `fn` behind its last read of a shared array, and compile both parts ahead of time.

    args: its arguments, as pytrees of arrays or of `ShapeDtypeStruct`s; only shapes and types matter.
    shared_argnums: which of them the scheduler owns. shared_arrays: arrays that `fn` closes over and the scheduler owns; they
    become arguments behind the others, because each write gives an array a new handle.
    donate_argnums: which of the others a call gives away; each is kept in place where the uncut function keeps it.
    order: "program" cuts where the last read stands; "hoist" first moves the reads as early as their operands allow.
    device: where both parts run; the default one of JAX if None.

    InputError: `fn` cannot be traced, an argnum is out of range, a shared array is donated, or is returned as it is.
    """
    traced = traced_with(fn, args, shared_argnums, shared_arrays)
    if order not in ORDERS:
        raise InputError(f"cut of '{traced.name}': unknown order '{order}'; choose one of: {', '.join(ORDERS)}")
    given_away = argnums("donate_argnums", donate_argnums, len(args), traced.name)
    numbers = [i for i, arg in enumerate(args) for _ in jax.tree.leaves(arg)]
    donated = {v for v, i in zip(traced.arguments, numbers, strict=False) if i in given_away}
    if both := [traced.names[v] for v in traced.arguments if v in donated and v in traced.shared]:
        raise InputError(
            f"cut of '{traced.name}': {', '.join(both)} shared and donated: a function that takes the memory of a shared array "
            f"over writes it, and only the scheduler does that; leave it out of donate_argnums, or out of the shared ones"
        )
    equations, gain = hoist(traced) if order == "hoist" else (traced.equations, None)
    return Cut(fn, traced, equations, donated, device or jax.devices()[0], gain)
