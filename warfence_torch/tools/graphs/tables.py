"""The shared tables of a graph: which tensors can be some, and where they lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from warfence.core.errors import InputError
from warfence.parity.graph import Table
from warfence_torch.tools.planting.shared import SharedTensors, named

Given = Mapping[str, Tensor] | Iterable[Tensor]


def tables_of(shared: Given) -> tuple[dict[str, Tensor], list[Table]]:
    """The tensors by name, and where they lie. InputError for one that no graph of this device can read."""
    by_name = named(shared)
    located = SharedTensors(by_name)
    for name, t in by_name.items():
        if t.is_cuda and t.get_device() != torch.cuda.current_device():
            raise InputError(
                f"shared '{name}' lies on {t.device}, but the graph is looked at on cuda:{torch.cuda.current_device()}; "
                f"make its device the current one: with torch.cuda.device({t.get_device()})"
            )
        if not t.is_cuda and not t.is_pinned():
            raise InputError(
                f"shared '{name}' lies in pageable memory of the host, which a replay does not read as it is then; "
                f"put it on the device, or pin it"
            )
    return by_name, located.tables()
