"""Other values for a table: every index another one, in range, and a hole stays a hole."""

from __future__ import annotations

import numpy as np
import pytest

from warfence.core.errors import InputError
from warfence.parity.other_values import other_values


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.float32, np.bool_])
def test_every_cell_holds_another_value_out_of_the_table(dtype: type) -> None:
    table = np.array([[0, 1, 1], [3, 0, 3]]).astype(dtype)
    wrong = other_values("table", table)
    assert wrong.dtype == dtype
    assert wrong.shape == table.shape
    assert (wrong != table).all()
    assert set(wrong.flat) <= set(table.flat)


def test_a_hole_stays_and_goes_nowhere_else() -> None:
    assert other_values("table", np.array([-1, 5, 2, -1])).tolist() == [-1, 2, 5, -1]


def test_a_table_of_one_value_has_no_other() -> None:
    with pytest.raises(InputError, match="all cells of 'pages' that hold an index hold the same one"):
        other_values("pages", np.array([-1, 4, 4]))
