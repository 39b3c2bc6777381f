"""Shapes in the signatures of kernels are checked while tests run: a wrong one is refused, in words. And what is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jaxtyping import Float32, Int32, TypeCheckError

pytest.importorskip("beartype")

import shapes

from warfence.parity.kernels import shared

D, LONGER = np.ones(3, np.float32), np.ones((2, 3, 1, 4), np.float32)


def attend(keys: Any) -> Any:
    values, seen = np.ones((1, 2, 1, 4), np.float32), np.ones((1, 1, 2), bool)
    return shared.attend(np.ones((1, 1, 1, 4), np.float32), keys, values, seen)


def test_the_premise_a_right_call_is_left_alone() -> None:
    assert attend(np.ones((1, 2, 1, 4), np.float32)).shape == (1, 1, 4)


@pytest.mark.parametrize(
    "keys", [np.ones((2, 3, 1, 4), np.float32), np.ones((1, 2, 1, 4)), np.ones((1, 2, 4), np.float32)],
    ids=["another axis", "float64", "an axis less"],
)  # fmt: skip
def test_a_wrong_shape_is_refused(keys: Any) -> None:
    with pytest.raises(TypeCheckError, match=r"(?s)warfence\.parity\.kernels\.shared\.attend.*'?keys"):
        attend(keys)


@pytest.mark.parametrize(
    ("hint", "checked"),
    [
        (Int32[np.ndarray, " n"], True), (dict[str, Float32[np.ndarray, "a b"]], True), (Int32[np.ndarray, "1"] | None, True),
        (np.ndarray, False), (dict[str, int], False), (Callable[[int], int], False),
    ],
)  # fmt: skip
def test_arrays_with_shapes_are_checked_and_nothing_else(hint: Any, checked: bool) -> None:
    assert shapes.has_shape(hint) is checked
