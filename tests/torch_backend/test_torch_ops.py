"""What holds of every op: each has a case, and each can be captured (no value on the host, no shape out of data)."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from warfence_torch.kernels import KERNELS


def test_every_op_has_a_case(cases: Any) -> None:
    assert {case.op for case in cases.values()} == set(KERNELS)


@pytest.mark.slow  # the first: torch loads what it knows of the meta device
def test_an_op_needs_no_values_of_its_arrays(case: Any, run: Any, world: Any) -> None:
    """On the meta device there are none: reading one, or picking a shape by one, raises. Shapes and kinds are the same."""
    given, _ = run(case)
    arrays = {**world, **case.own}
    env = {n: torch.tensor(arrays[n]).to("meta") for n in case.sees}
    with torch.inference_mode():
        without = KERNELS[case.op](env, case.attrs)
    assert {n: (tuple(t.shape), t.dtype.itemsize, t.is_floating_point()) for n, t in without.items()} == {
        n: (a.shape, a.itemsize, a.dtype.kind == "f") for n, a in given.items()
    }
