"""The marker variant, for comparison: one executable, with an ordered callback behind the last read.

Its limits, which are why `cut` exists:
- PjRt holds a shared array until the whole executable has run. The callback tells the host early, but a write that donates
  the array still lands last. Only a table that is written in place (host memory that an array aliases) gains.
- The callback costs a trip to the host: what was read is copied there, and on a GPU dispatch becomes synchronous.
- One host function serves all launches: it is not told which launch calls it.
- Callbacks of two ordered effects run in order, so the marker waits for those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, Device
from jax.experimental import io_callback
from jax.extend.core import Literal
from jax.stages import Compiled

from warfence.core.errors import InputError
from warfence.parity.boundary import Boundary, find
from warfence.parity.other_values import other_values
from warfence_jax.compiled import Module, too_early
from warfence_jax.compiler import Compiler
from warfence_jax.tools.cutting.arguments import traced_with
from warfence_jax.tools.cutting.operations import of_one_executable, operations
from warfence_jax.tools.cutting.part import described, function
from warfence_jax.tools.cutting.plan import plan
from warfence_jax.tools.cutting.trace import Traced, shape_and_dtype

SCOPE = "warfence_read_done"  # in the names of the callback's operations, by which the compiled module tells it
REMEDY = (
    "An operation that is left out, such as an optimization_barrier or a copy of the array, is no read: use cut(), or read the "
    "array itself"
)


class Marked:
    """A function in one executable that calls the host behind its last read of a shared array."""

    def __init__(self, traced: Traced, on_read_done: Callable[[], object], device: Device) -> None:
        self._traced, self._on_read_done = traced, on_read_done
        self.boundary: Boundary = find(of_one_executable(traced, operations(traced, traced.equations)))
        at = self.boundary.after.position + 1 if self.boundary.after is not None else 0
        before, after = plan(traced, (traced.equations[:at], traced.equations[at:]), ())
        readers = [traced.equations[op.position] for op in self.boundary.reads]
        read = list(dict.fromkeys(v for e in readers for v in e.outvars))
        gives = list(dict.fromkeys((*before.gives, *read)))
        head = function(traced, before.equations, (*before.takes, *before.blanks), gives)
        rest = function(traced, after.equations, (*after.takes, *after.blanks), after.gives)
        inputs = (*traced.arguments, *traced.constants)

        def tell(*_: Array) -> None:
            self._on_read_done()

        def run(*given: Array) -> list[Any]:
            known = dict(zip(inputs, given, strict=True))
            made = dict(zip(gives, head(*(known[v] for v in (*before.takes, *before.blanks))), strict=True))
            # Values are whole: of one element alone, XLA would compute that element first and the rest later.
            with jax.named_scope(SCOPE):
                io_callback(tell, (), *(made[v] for v in read), ordered=True)
            # The barrier: else XLA may read again, behind the callback, where that is cheaper than to keep a value.
            known |= dict(zip(gives, jax.lax.optimization_barrier(list(made.values())), strict=True))
            known |= dict(zip(after.gives, rest(*(known[v] for v in (*after.takes, *after.blanks))), strict=True))
            results = traced.results
            return [jnp.asarray(r.val, shape_and_dtype(r)[1]) if isinstance(r, Literal) else known[r] for r in results]

        self.compiled = Compiler().compile(
            f"{traced.name}/marked", run, [described(v, device) for v in inputs]
        )[0].get()  # fmt: skip

        _check(self.compiled, traced)

    def __call__(self, *args: Any) -> Any:
        flat = self.compiled(*jax.tree.leaves(tuple(args)), *self._traced.constants.values())
        return jax.tree.unflatten(self._traced.result_tree, flat)

    def check(self, args: Sequence[Any]) -> None:
        """Run it on copies of the arguments, and overwrite the shared ones when it says that they are read.

        InputError where the results are then others than those of a run that is left alone. Only on a CPU, where the
        memory of an array can be written; a shared array of one value is not checked.
        """
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tuple(args))]
        shared = [v in self._traced.shared for v in self._traced.arguments]
        if len(leaves) != len(shared):
            return
        mine = [aligned(leaf) if is_shared else leaf for leaf, is_shared in zip(leaves, shared, strict=True)]
        tables = [leaf for leaf, is_shared in zip(mine, shared, strict=True) if is_shared]
        try:
            wrong = [other_values("shared", table) for table in tables]
        except InputError:
            return
        told, self._on_read_done = self._on_read_done, lambda: None
        try:
            right = self._results(mine)
            self._on_read_done = partial(_overwrite, tables, wrong)
            spoilt = self._results(mine)
        finally:
            self._on_read_done = told
        if any(not np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(right, spoilt, strict=True)):
            raise InputError(
                f"marked '{self._traced.name}': overwriting the shared arrays behind {self.boundary.after or 'the start'} "
                f"changes a result, so something reads them later than the trace shows; use cut, whose parts cannot"
            )

    def _results(self, arguments: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        given = [jax.device_put(a) for a in arguments]
        jax.block_until_ready(given)
        flat = jax.block_until_ready(self.compiled(*given, *self._traced.constants.values()))
        jax.effects_barrier()
        return [np.array(r) for r in flat]


def aligned(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that an array on the CPU takes over as its memory: it begins at a multiple of 64 bytes."""
    raw = np.empty(values.nbytes + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    copy: np.ndarray[Any, Any] = raw[begin : begin + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def _overwrite(tables: Sequence[np.ndarray[Any, Any]], values: Sequence[np.ndarray[Any, Any]]) -> None:
    for table, other in zip(tables, values, strict=True):
        table[...] = other


def _check(compiled: Compiled, traced: Traced) -> None:
    """InputError where the compiled module reads a shared array behind the callback."""
    module = Module(compiled.as_text() or "")
    marker = module.scoped(SCOPE)
    if marker is None:
        return
    first = module.tokens  # before the arguments stand the tokens of ordered callbacks
    shared = {first + i: traced.names[v] for i, v in enumerate(traced.arguments) if v in traced.shared}
    for use in module.behind(list(shared), marker):
        raise too_early(f"marked '{traced.name}'", shared[use.table], use, marker, REMEDY)


def marked(
    fn: Callable[..., Any], args: Sequence[Any], on_read_done: Callable[[], object], *,
    shared_argnums: int | Sequence[int] = (), shared_arrays: Sequence[Array] = (), device: Device | None = None,
) -> Marked:  # fmt: skip
    """Compile `fn` so that `on_read_done()` is called, on a thread of the runtime, once its last shared read is over.

    The arguments are those of `cut`. Where nothing is read the call comes as soon as the runtime likes. InputError as there; and,
    where arrays are given and no shapes, on a CPU, when a run with the shared ones overwritten at that call gives other results.
    """
    traced = traced_with(fn, args, shared_argnums, shared_arrays)
    made = Marked(traced, on_read_done, device or jax.devices()[0])
    arrays = all(isinstance(leaf, (Array, np.ndarray)) for leaf in jax.tree.leaves(tuple(args)))
    if arrays and not traced.constants and (device or jax.devices()[0]).platform == "cpu":
        made.check(args)
    return made
