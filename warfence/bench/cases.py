"""Which cases are measured: one point, and axes that each move one size away from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from warfence.bench import presets
from warfence.core.errors import InputError

BASE_WRITES, BASE_BATCH, BASE_ROWS = 10, 8, 1000

# What is moved by each axis; the others serve requests and are not made of cases (`warfence.bench.engine_runs`, `.rounds`).
VALUES: dict[str, tuple[int | bool, ...]] = {
    "writes": (3, 10, 30, 100),
    "sync": (False, True),
    "batch": (1, 8, 64, 256),
    "table_rows": (1_000, 10_000, 100_000, 1_000_000),
}
SERVED = ("prefill", "spec")
ROUNDS = "rounds"
AXES = ("forward", *VALUES, "model", *SERVED, ROUNDS)
MODELS = ("demo", "large")


@dataclass(frozen=True, slots=True)
class Case:
    """One point. writes: table writes of a step, each of 8 cells; on CUDA each is two or three operations on the stream.

    sync: the host waits for the schedule lane at each step, as a device-to-host copy there does. table_rows: of
    req_to_token. The defaults are the point that the axes move away from.
    """

    forward: str
    writes: int = BASE_WRITES
    sync: bool = False
    batch: int = BASE_BATCH
    table_rows: int = BASE_ROWS

    @property
    def name(self) -> str:
        sync = ", sync" if self.sync else ""
        return f"{self.forward}, {self.writes} writes{sync}, batch {self.batch}, {self.table_rows} rows"

    @property
    def shape(self) -> tuple[str, int]:
        """Cases that are alike in this, and in the rows of the table, share compiled forwards."""
        return self.forward, self.batch


def cases(axes: Sequence[str], forwards: Sequence[str], device: str) -> list[Case]:
    """The cases of the axes, each once, those of one shape beside each other.

    Without an axis, the point itself. forwards: presets, or none for those that fit the device. InputError for a preset or an
    axis that there is not.
    """
    for axis in axes:
        if axis not in AXES:
            raise InputError(f"unknown axis '{axis}'; choose one of: {', '.join(AXES)}")
    for forward in forwards:
        presets.find(forward)
    points = [Case(forward) for forward in forwards or presets.usual(device)]
    found: list[Case] = [] if axes else points
    for axis in axes:
        if axis == "forward":
            found += [Case(forward) for forward in forwards or presets.all_usual(device)]
        elif axis == "model":
            found += [Case(forward) for forward in MODELS]
        elif axis in VALUES:
            found += [replace(point, **_moved(axis, value)) for point in points for value in VALUES[axis]]
    distinct = list(dict.fromkeys(found))
    order = list(dict.fromkeys(case.shape for case in distinct))
    return sorted(distinct, key=lambda case: order.index(case.shape))


def _moved(axis: str, value: int | bool) -> dict[str, Any]:
    """The field that an axis moves."""
    return {axis: value}
