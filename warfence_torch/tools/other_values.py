"""Other values for shared tensors (`warfence.parity.other_values`), and tensors bit by bit."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from warfence.core.errors import InputError
from warfence.parity.other_values import other_values


def _other(name: str, table: Tensor) -> Tensor:
    values = table.detach().cpu()
    plain = (
        values.double() if values.dtype.is_floating_point else values
    )  # numpy has no bfloat16, and float64 holds all
    return torch.from_numpy(other_values(name, plain.numpy())).to(table.dtype).to(table.device)


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
        name: (given[name].to(table.device) if name in given else _other(name, table)).contiguous()
        for name, table in tables.items()
    }


def bits(t: Tensor) -> Tensor:
    """What a tensor holds, byte by byte, so that a NaN equals itself."""
    return t.detach().clone().contiguous().reshape(-1).view(torch.uint8)
