"""What one lane's table writes pass through: pinned memory, words on the device, and views of both that are made once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int32, Int64
from torch import Tensor

from warfence_torch.staging import PinnedRing
from warfence_torch.tools.fresh import FreshStaging

MakeStaging = type[PinnedRing] | type[FreshStaging]
WRITES_AHEAD = (
    64  # writes that the host can be ahead; fewer than a step has, and it would wait for a barrier behind its back
)
MOST_SIZES = 64  # sizes of writes whose views are kept


@dataclass(frozen=True, slots=True)
class WriteViews:
    """One size of write. The cells travel as int64, as a scatter takes them, so that nothing is converted on the device."""

    packed: Int32[np.ndarray, " 3n"]
    cells: Int64[np.ndarray, " n"]
    values: Int32[np.ndarray, " n"]
    device_packed: Int32[Tensor, " 3n"]
    device_cells: Int64[Tensor, " n"]
    device_values: Int32[Tensor, " n"]


class WriteStaging:
    """Never another lane's: two lanes that write at a time would scatter each other's words. words: 3 for each cell."""

    def __init__(self, words: int, make_staging: MakeStaging) -> None:
        self.words = words
        self._ring = make_staging(words, depth=WRITES_AHEAD)
        self.device_words = torch.empty(words, dtype=torch.int32, device="cuda")
        self._views: dict[int, WriteViews] = {}

    def write(
        self, flat: Int32[Tensor, " size"], cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"],
        stream: torch.cuda.Stream,
    ) -> None:  # fmt: skip
        """Upload and scatter on the (current) stream."""
        v = self._views.get(len(cells)) or self._make(len(cells))
        v.cells[:] = cells
        v.values[:] = values
        self._ring.upload(v.packed, v.device_packed, stream)
        flat.index_copy_(0, v.device_cells, v.device_values)

    def _make(self, n: int) -> WriteViews:
        if len(self._views) >= MOST_SIZES:
            self._views.clear()
        packed, device = np.empty(3 * n, np.int32), self.device_words[: 3 * n]
        views = WriteViews(
            packed, packed[: 2 * n].view(np.int64), packed[2 * n :],
            device, device[: 2 * n].view(torch.int64), device[2 * n :],
        )  # fmt: skip
        self._views[n] = views
        return views
