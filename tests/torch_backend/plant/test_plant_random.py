"""plant() on random functions: the boundary is the stage of the last read, and a replay gives what numpy gives.

`WARFENCE_EXAMPLES=500` looks at that many functions instead of a few.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from tests.random_functions import TABLES, WIDTH, NumpyOps, RandomFunction, random_functions
from warfence.host.lanes import WorkerLane
from warfence_torch import plant, stage

EXAMPLES = int(os.environ.get("WARFENCE_EXAMPLES", "40"))
COLUMNS = torch.arange(WIDTH)


class TorchOps:
    """Implements `random_functions.Ops`: eager torch, `row` as a view that the addition reads."""

    stage = staticmethod(stage)

    def gather(self, table: Tensor, rows: Tensor) -> Tensor:
        return table[rows % len(table), COLUMNS]

    def row(self, table: Tensor, row: int) -> Tensor:
        return table[row]

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        return a + b

    def scale(self, a: Tensor) -> Tensor:
        return torch.floor((a % 64).to(torch.float32) * 1.5).to(torch.int32)

    def update(self, a: Tensor, b: Tensor) -> Tensor:
        copy = a.clone()
        copy[: WIDTH // 2] = b[: WIDTH // 2]
        return copy

    def branch(self, a: Tensor, table: Tensor, row: int) -> Tensor:
        return torch.where(a % 2 == 0, table[row], a)

    def loop(self, a: Tensor, table: Tensor, gather: Callable[[Any, Any], Any]) -> Tensor:
        for _ in range(2):
            a = a + gather(table, a)
        return a

    def nested(self, call: Callable[[Any, Any], Any], a: Tensor, table: Tensor) -> Tensor:
        return call(a, table)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(random_functions())
def test_the_boundary_is_the_stage_of_the_last_read(function: RandomFunction) -> None:
    arrays = function.arguments()
    left, right, x = (torch.tensor(a) for a in arrays)
    planted = plant(
        lambda: [t.clone() for t in function.run(TorchOps(), left, right, x)],
        dict(zip(TABLES, (left, right), strict=True)),
    )
    assert planted.boundary.stage == function.boundary
    lane = WorkerLane("forward")
    try:
        planted.replay(lane, 1)
        lane.synchronize()
    finally:
        lane.close()
    for ours, right in zip(planted.output, function.run(NumpyOps(), *arrays), strict=True):
        np.testing.assert_array_equal(ours.numpy(), right)
