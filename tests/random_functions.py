"""Random functions over shared tables, written once and run by any framework: what finds a boundary is tried on these.

A function is a list of steps over a growing list of int32 values [WIDTH]. Each step is a stage of its own, so that the
boundary that was found can be compared by stage. All arithmetic is exact, so that results can be compared bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
from hypothesis import strategies as st

WIDTH, ROWS = 4, 8
TABLES = ("left", "right")
Kind = Literal["gather", "row", "loop", "branch", "add", "scale", "update", "nested"]
READERS: tuple[Kind, ...] = ("gather", "row", "loop", "branch", "nested")


@dataclass(frozen=True, slots=True)
class FunctionStep:
    """One step. a, b: places in the list of values, taken modulo its length. table: in TABLES. row: of the table."""

    kind: Kind
    a: int
    b: int
    table: int
    row: int

    @property
    def reads(self) -> bool:
        """Whether it reads its table."""
        return self.kind in READERS


@dataclass(frozen=True, slots=True)
class RandomFunction:
    """(left [ROWS, WIDTH], right [ROWS, WIDTH], x [WIDTH]), all int32 -> the last two values. `seed` fills the arguments."""

    steps: tuple[FunctionStep, ...]
    seed: int

    @property
    def boundary(self) -> str | None:
        """The stage of the last step that reads a table."""
        readers = [i for i, step in enumerate(self.steps) if step.reads]
        return stage_name(readers[-1]) if readers else None

    def arguments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """left, right, x with small random values."""
        rng = np.random.default_rng(self.seed)
        left, right = (rng.integers(0, ROWS, (ROWS, WIDTH)).astype(np.int32) for _ in TABLES)
        return left, right, rng.integers(0, ROWS, WIDTH).astype(np.int32)

    def run(self, ops: Ops, left: Any, right: Any, x: Any) -> tuple[Any, Any]:
        """Run it with the operations of one framework."""
        tables, values = (left, right), [x, ops.add(x, x)]
        for i, step in enumerate(self.steps):
            a, b, table = values[step.a % len(values)], values[step.b % len(values)], tables[step.table]
            with ops.stage(stage_name(i)):
                values.append(_run_step(ops, step, a, b, table))
        return values[-2], values[-1]


class Ops(Protocol):
    """What a framework brings. Values are int32 [WIDTH], tables int32 [ROWS, WIDTH]; integers wrap around."""

    def stage(self, name: str) -> AbstractContextManager[object]:
        """What is done inside belongs to this stage."""
        ...

    def gather(self, table: Any, rows: Any) -> Any:
        """table[rows % ROWS, 0..WIDTH-1], one cell a column."""
        ...

    def row(self, table: Any, row: int) -> Any:
        """table[row]."""
        ...

    def add(self, a: Any, b: Any) -> Any: ...

    def scale(self, a: Any) -> Any:
        """a % 64 * 1.5 in float32, rounded down to int32."""
        ...

    def update(self, a: Any, b: Any) -> Any:
        """A private copy of `a` whose first half is overwritten with that of `b`, in place where the framework can."""
        ...

    def branch(self, a: Any, table: Any, row: int) -> Any:
        """table[row] where a is even, else a."""
        ...

    def loop(self, a: Any, table: Any, gather: Callable[[Any, Any], Any]) -> Any:
        """Twice: a = a + gather(table, a)."""
        ...

    def nested(self, call: Callable[[Any, Any], Any], a: Any, table: Any) -> Any:
        """call(a, table) as a function inside the function."""
        ...


def _run_step(ops: Ops, step: FunctionStep, a: Any, b: Any, table: Any) -> Any:
    match step.kind:
        case "gather":
            return ops.add(ops.gather(table, a), b)
        case "row":
            return ops.add(ops.row(table, step.row), b)
        case "loop":
            return ops.loop(a, table, ops.gather)
        case "branch":
            return ops.branch(a, table, step.row)
        case "nested":  # what follows the read inside is no read any more
            return ops.nested(lambda a, table: ops.add(ops.gather(table, a), a), a, table)
        case "add":
            return ops.add(a, b)
        case "scale":
            return ops.scale(a)
        case "update":
            return ops.update(a, b)


def stage_name(step: int) -> str:
    """The stage of a step, counted from 0."""
    return f"step_{step}"


class NumpyOps:
    """The reference."""

    def stage(self, name: str) -> AbstractContextManager[object]:
        return nullcontext()

    def gather(self, table: Any, rows: Any) -> Any:
        return table[rows % ROWS, np.arange(WIDTH)]

    def row(self, table: Any, row: int) -> Any:
        return table[row]

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def scale(self, a: Any) -> Any:
        return np.floor((a % 64).astype(np.float32) * np.float32(1.5)).astype(np.int32)

    def update(self, a: Any, b: Any) -> Any:
        copy = a.copy()
        copy[: WIDTH // 2] = b[: WIDTH // 2]
        return copy

    def branch(self, a: Any, table: Any, row: int) -> Any:
        return np.where(a % 2 == 0, table[row], a)

    def loop(self, a: Any, table: Any, gather: Callable[[Any, Any], Any]) -> Any:
        for _ in range(2):
            a = a + gather(table, a)
        return a

    def nested(self, call: Callable[[Any, Any], Any], a: Any, table: Any) -> Any:
        return call(a, table)


def random_functions(most_steps: int = 8) -> st.SearchStrategy[RandomFunction]:
    """Functions of one to `most_steps` steps."""
    kinds: Sequence[Kind] = get_args(Kind)
    step = st.builds(
        FunctionStep,
        st.sampled_from(kinds),
        st.integers(0, most_steps + 1),
        st.integers(0, most_steps + 1),
        st.integers(0, len(TABLES) - 1),
        st.integers(0, ROWS - 1),
    )
    steps = st.lists(step, min_size=1, max_size=most_steps).map(tuple)
    return st.builds(RandomFunction, steps, st.integers(0, 2**16))
