"""Other values for the shared tables that stay in range, so that a read of them shows in a result and in nothing else."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from warfence.core.errors import InputError


def other_values(name: str, table: Tensor) -> Tensor:
    """A tensor of the table's shape in which each cell holds another value that occurs in the table: the next larger one.

    Negative whole numbers ("no page") stay where they are, and do not come where an index stood. InputError where all cells
    are equal.
    """
    flat = table.detach().reshape(-1)
    usable = flat >= 0 if not (flat.is_floating_point() or flat.is_complex() or flat.dtype is torch.bool) else None
    part = flat[usable] if usable is not None else flat
    values, at = torch.unique(part, return_inverse=True)
    if len(values) < 2:
        raise InputError(
            f"all cells of '{name}' that hold an index hold the same one, so there is no other value in range to put there; "
            f"fill it with different ones, or say which: wrong={{'{name}': tensor}}"
        )
    turned = values[(at + 1) % len(values)]
    wrong = flat.clone()
    if usable is None:
        wrong.copy_(turned)
    else:
        wrong[usable] = turned
    return wrong.view(table.shape)


def wrong_values(tables: Mapping[str, Tensor], given: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
    """Other values for each table, those that the user gave first. InputError where one does not fit its table."""
    given = dict(given or {})
    for name, wrong in given.items():
        if name not in tables:
            raise InputError(f"wrong values are given for '{name}', which is not shared; shared: {', '.join(tables)}")
        table = tables[name]
        if not isinstance(wrong, Tensor) or wrong.shape != table.shape or wrong.dtype != table.dtype:
            raise InputError(
                f"wrong values of '{name}': a tensor of shape {tuple(table.shape)} and {table.dtype} is needed"
            )
        if torch.equal(wrong.to(table.device), table):
            raise InputError(f"the wrong values of '{name}' are those that it holds; give other ones")
    return {
        name: (given[name].to(table.device) if name in given else other_values(name, table)).contiguous()
        for name, table in tables.items()
    }


def bits(t: Tensor) -> Tensor:
    """What a tensor holds, byte by byte, so that a NaN equals itself."""
    return t.detach().clone().contiguous().reshape(-1).view(torch.uint8)
