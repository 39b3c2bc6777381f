"""A toy forward on the strict backend: one table, stages that read it early and late, kernels that a test can replace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from warfence.core.backend import ArraySpec
from warfence.core.batch import Batch, BatchLayout, pack
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import ForwardProgram, Stage
from warfence.parity.kernels import Kernel
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.fixture import Fixture

LAYOUT = BatchLayout(1, 1)
STAGES = (
    Stage("take", Region.LOAD_BATCH, "early", reads=("t",), gives=("early",)),
    Stage("read", Region.REPLAY, "late", reads=("t",), takes=("early",), gives=("late",)),
    Stage("think", Region.REPLAY, "think", takes=("late",), gives=("thought",)),
    Stage("keep", Region.TAIL, "keep", takes=("thought",), state=("s",)),
)
PROGRAM = ForwardProgram("toy", ForwardMode.DECODE, LAYOUT, STAGES, outputs=("early", "late", "thought"))


def kernels(**replaced: Kernel) -> dict[str, Kernel]:
    """`early` and `late` copy cell 0 of the table; `thought` is what `late` was; `keep` remembers it."""
    return {
        "early": lambda env, attrs: {"early": env["t"][0, :1].copy()},
        "late": lambda env, attrs: {"late": env["t"][0, :1].copy()},
        "think": lambda env, attrs: {"thought": env["late"].astype(np.float32)},
        "keep": lambda env, attrs: env["s"].__setitem__(slice(None), env["thought"]) or {},
    } | replaced


@dataclass
class Toy:
    """A backend with its lanes and one compiled forward."""

    backend: StrictBackend
    program: ForwardProgram = PROGRAM
    marker_after: str | None = "read"
    gated: bool = True
    spec: dict[str, ArraySpec] = field(default_factory=lambda: {"t": ArraySpec((1, 4)), "u": ArraySpec((2, 2))})

    def __post_init__(self) -> None:
        self.fixture = Fixture(self.backend, self.spec, state={"s": ArraySpec((1,), "float32")})
        self.tables, self.schedule, self.lane = self.fixture.tables, self.fixture.schedule, self.fixture.lane
        self.forward = self.fixture.forward(self.program, self.marker_after, self.gated)

    def batch(self) -> Batch:
        return pack(LAYOUT, [])

    def launch(self, number: int) -> Any:
        """All three regions; gives the outputs."""
        return self.fixture.launch(self.forward, self.batch(), number)

    def write(self, value: int, table: str = "t") -> None:
        self.fixture.write(table, [0], [value])

    def happened(self) -> list[str]:
        """The log without the reads of stages, a few words an event."""
        names = ((e.kind, e.resource or e.stage or e.event) for e in self.backend.log if e.kind != "read")
        return [f"{kind} {name}" for kind, name in names]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


@pytest.fixture
def make_toy() -> Callable[..., Toy]:
    def make(replaced: dict[str, Kernel] | None = None, *, backend: dict[str, Any] | None = None, **how: Any) -> Toy:
        return Toy(StrictBackend(kernels=kernels(**(replaced or {})), **(backend or {})), **how)

    return make


@pytest.fixture
def toy(make_toy: Callable[..., Toy]) -> Toy:
    return make_toy()
