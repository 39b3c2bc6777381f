"""Cuts a jittable function behind its last read of a shared array: two executables, of which only the first takes it.

PjRt holds an argument until the executable that took it has run, read or not. So a write that donates the array lands
once the head has run, while the rest still runs.

A shared array is one that the scheduler writes: the function only reads it. A read whose result nobody uses counts, as it
does in a framework that runs at once; only hoisting leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, Device
from jax.extend.core import JaxprEqn, Literal, Var
from jax.stages import Compiled

from warfence.core.backend import Marker
from warfence.core.errors import InputError
from warfence.core.fence import Ticket
from warfence.parity.boundary import Boundary, find
from warfence_jax.compiler import Compiler
from warfence_jax.lanes import JaxLane
from warfence_jax.tables import Tables
from warfence_jax.tokens import Record
from warfence_jax.tools.cutting.arguments import argnums, traced_with
from warfence_jax.tools.cutting.compare import Comparison, compare
from warfence_jax.tools.cutting.operations import operations
from warfence_jax.tools.cutting.order import Gain, hoist
from warfence_jax.tools.cutting.part import Part, Values
from warfence_jax.tools.cutting.plan import plan
from warfence_jax.tools.cutting.replay import Issued
from warfence_jax.tools.cutting.trace import Traced, shape_and_dtype
from warfence_jax.tools.cutting.uncut import REFUSED, donation, uncut

ORDERS, BEHIND = ("program", "hoist"), ("last", "each")
LIMITS = "not seen: callbacks that read a shared array which they close over, instead of taking it as an operand"


class Cut:
    """A function in parts. `cut(*args)` runs them; arrays of `shared_arrays` are arguments behind the others.

    boundary: where the reads end, with every read. parts: the executables, in order. gain: what hoisting moved
    (order="hoist"). unread: shared arrays that the function does not read; no executable takes them.
    """

    def __init__(
        self, fn: Callable[..., Any], traced: Traced, equations: Sequence[JaxprEqn], donated: Collection[Var],
        behind: str, device: Device, head_device: Device, gain: Gain | None,
    ) -> None:  # fmt: skip
        self._fn, self._traced, self._donated, self._device = fn, traced, donated, device
        self._compiler = Compiler()
        self.gain = gain
        said = operations(traced, equations)
        self.boundary: Boundary = find(said)
        last = {access.name: op.position for op in said for access in op.reads}
        ends = sorted(set(last.values()))[-1 if behind == "last" else 0 :]
        borders = [0, *(end + 1 for end in ends), len(equations)]
        groups = [equations[i:j] for i, j in pairwise(borders) if j > i] or [()]
        heads = ["head"] if len(ends) == 1 else [f"head {i + 1}" for i in range(len(ends))]
        made = zip(plan(traced, groups, donated, split=device != head_device), [*heads, "rest"], strict=False)
        self.parts = tuple(
            Part(traced, p, label, device if label == "rest" else head_device, self._compiler) for p, label in made
        )
        self._heads = len(heads)
        shared = [v for v in traced.arguments if v in traced.shared]
        self.unread = tuple(traced.names[v] for v in shared if traced.names[v] not in last)
        place = str(self.boundary.after) if self.boundary.after is not None else "the start"
        self._points: dict[str | None, Point] = {None: self._point(place, shared)}
        self._points |= {traced.names[v]: self._point(f"the last read of {traced.names[v]}", [v]) for v in shared}

    # -- running it

    def head(self, *args: Any) -> Values:
        """Run what takes the shared arrays, which may be donated to a write once this was called. Returns what is known
        then: give it to `rest`. Nothing runs where nothing is read."""
        known = self._values(args)
        for part in self.parts[: self._heads]:
            known = known | part(known)
        return known

    def rest(self, known: Values) -> Any:
        """Run what comes behind the boundary. Returns what the function returns."""
        for part in self.parts[self._heads :]:
            known = known | part(known)
        return self._result(known)

    def __call__(self, *args: Any) -> Any:
        return self.rest(self.head(*args))

    def replay(self, lane: JaxLane, launch: int, args: Sequence[Any], tables: Tables | None = None) -> Issued:
        """Issue one launch on a lane and return at once. A shared array may be given as the `Version` that tables captured.

        It is legal to write the shared arrays behind the ticket, and to read the results behind the lane. Donated arguments
        are given away. FenceError when the lane failed before.
        """
        issued = Issued(launch, lane, self._values(args), tables)
        before = lane.newest()
        tokens = issued.issue(self.parts, self._result)
        for point in self._points.values():
            point.record.arm(launch, before if point.part is None else (tokens[point.part],))
            point.marker.issued(launch, point.record)
        return issued

    def ticket(self, launch: int, name: str | None = None) -> Ticket:
        """The read-done promise of the launch just issued: of all shared arrays, or of the one named, which is earlier where
        the cut is behind each. FenceError before its replay, and for any other launch."""
        if name not in self._points:
            names = ", ".join(str(n) for n in self._points if n is not None)
            raise InputError(f"cut of '{self._traced.name}': no shared array '{name}'; there are: {names}")
        return self._points[name].marker.ticket(launch)

    # -- reports

    def report(self) -> list[str]:
        """Lines: each shared read with operation, cells and code lines; what decided; what was moved; what became of each
        donated argument. Compiles the uncut function where arguments are donated."""
        said = [*self.boundary.lines(), *(self.gain.lines() if self.gain is not None else ())]
        said += [f"{name}: shared, but never read; no executable takes it" for name in self.unread]
        return [*said, *(f"{name}: donated, {became}" for name, became in self.donation.items()), LIMITS]

    @cached_property
    def donation(self) -> dict[str, str]:
        """Each donated argument and what became of it, read from the texts of the executables."""
        return donation(self.parts, self._traced, self._donated, self.uncut) if self._donated else {}

    @property
    def refused(self) -> tuple[str, ...]:
        """Donated arguments that the uncut function keeps in place, and the cut one does not."""
        return tuple(name for name, became in self.donation.items() if became == REFUSED)

    @cached_property
    def uncut(self) -> Compiled:
        """The function in one executable, which takes its arguments flat; compiled when first asked for."""
        return uncut(self._fn, self._traced, self._donated, self._device, self._compiler)

    def compare(self, *args: Any) -> Comparison:
        """Run the uncut and the cut function on copies of the arguments. Callbacks run twice."""
        return compare(self.uncut, self, args, self._traced, self._device)

    # -- inside

    def _point(self, place: str, arrays: Collection[Var]) -> Point:
        takers = [i for i, part in enumerate(self.parts) if not set(part.shared).isdisjoint(arrays)]
        return Point(Marker(place), Record(), takers[-1] if takers else None)

    def _values(self, args: Sequence[Any]) -> Values:
        """The leaves of the arguments by their variables. InputError when they are not those of the cut."""
        leaves, tree = jax.tree.flatten(tuple(args))
        if tree != self._traced.tree:
            raise InputError(
                f"cut of '{self._traced.name}': called with {tree}, but it was cut for {self._traced.tree}; "
                f"arrays of shared_arrays come behind the other arguments"
            )
        return dict(zip(self._traced.arguments, leaves, strict=True))

    def _result(self, known: Values) -> Any:
        """What the function returns, of all that is known."""
        flat = [
            jnp.asarray(v.val, shape_and_dtype(v)[1]) if isinstance(v, Literal) else known[v]
            for v in self._traced.results
        ]
        return jax.tree.unflatten(self._traced.result_tree, flat)


@dataclass(frozen=True, slots=True)
class Point:
    """Where reads end: behind a part, or before the start (None). record: armed anew by each launch."""

    marker: Marker
    record: Record
    part: int | None


def cut(
    fn: Callable[..., Any], args: Sequence[Any], *, shared_argnums: int | Sequence[int] = (),
    shared_arrays: Sequence[Array] = (), donate_argnums: int | Sequence[int] = (), order: str = "program",
    behind: str = "last", device: Device | None = None, head_device: Device | None = None,
) -> Cut:  # fmt: skip
    """Cut `fn` behind its last read of a shared array, and compile both parts ahead of time.

    args: its arguments, as pytrees of arrays or of `ShapeDtypeStruct`s; only shapes and types matter.
    shared_argnums: which of them the scheduler owns. shared_arrays: arrays that `fn` closes over and the scheduler owns; they
    become arguments behind the others, because each write gives an array a new handle.
    donate_argnums: which of the others a call gives away; each is kept in place where the uncut function keeps it.
    order: "program" cuts where the last read stands; "hoist" first moves the reads as early as their operands allow.
    behind: "last" makes one cut, behind the last read of all; "each" makes one behind the last read of each shared array.
    device: where it runs; the default one of JAX if None. head_device: where the parts run that take shared arrays, if
    elsewhere. With a GPU that must be the CPU, or a write waits for all that was dispatched to the one compute stream before;
    hoist then, so that only the reads run there.

    InputError: `fn` cannot be traced, an argnum is out of range, a shared array is donated, or is returned as it is.
    """
    traced = traced_with(fn, args, shared_argnums, shared_arrays)
    for what, chosen, allowed in (("order", order, ORDERS), ("behind", behind, BEHIND)):
        if chosen not in allowed:
            raise InputError(f"cut of '{traced.name}': {what} is '{chosen}'; choose one of: {', '.join(allowed)}")
    given_away = argnums("donate_argnums", donate_argnums, len(args), traced.name)
    numbers = [i for i, arg in enumerate(args) for _ in jax.tree.leaves(arg)]
    donated = {v for v, i in zip(traced.arguments, numbers, strict=False) if i in given_away}
    if both := [traced.names[v] for v in traced.arguments if v in donated and v in traced.shared]:
        raise InputError(
            f"cut of '{traced.name}': {', '.join(both)} shared and donated: a function that takes the memory of a shared array "
            f"over writes it, and only the scheduler does that; leave it out of donate_argnums, or out of the shared ones"
        )
    equations, gain = hoist(traced) if order == "hoist" else (traced.equations, None)
    device = device or jax.devices()[0]
    return Cut(fn, traced, equations, donated, behind, device, head_device or device, gain)
