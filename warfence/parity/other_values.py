"""Other values for a table that stay in range, so that a read of them shows in a result and in nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from warfence.core.errors import InputError


def other_values(name: str, table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of the table's shape in which each cell holds another value that occurs in the table: the next larger one.

    Negative whole numbers ("no page") stay where they are, and do not come where an index stood. InputError where all cells
    are equal.
    """
    wrong = table.copy()
    usable = table >= 0 if table.dtype.kind == "i" else np.ones(table.shape, bool)
    values, at = np.unique(table[usable], return_inverse=True)
    if len(values) < 2:
        raise InputError(
            f"all cells of '{name}' that hold an index hold the same one, so there is no other value in range to put there; "
            f"fill it with different ones, or say which: wrong={{'{name}': tensor}}"
        )
    wrong[usable] = values[(at.reshape(-1) + 1) % len(values)]
    return wrong
