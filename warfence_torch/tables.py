"""The shared tables as torch tensors, written in place. Only the fence guards them: a wrong policy is silent here."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Int32
from torch import Tensor

from warfence.core.backend import PLAN, SCHEDULE, ArraySpec, Lane
from warfence.core.errors import InputError
from warfence.host.lanes import WorkerLane
from warfence.host.own import own_lane
from warfence_torch.lanes_cuda import CudaLane
from warfence_torch.staging import PinnedRing
from warfence_torch.writes import MakeStaging, WriteStaging

LEAST_WORDS = 4096  # of a lane's staging: 2048 cells a write before it has to grow


def make_arrays(specs: Mapping[str, ArraySpec], device: str) -> dict[str, Tensor]:
    """Zeroed tensors for the specs."""
    kinds = {"int32": torch.int32, "float32": torch.float32}
    return {n: torch.zeros(s.shape, dtype=kinds[s.dtype], device=device) for n, s in specs.items()}


class CudaTables:
    """Tables on the device; a write is one upload of (cells, values) and one scatter on the lane's stream."""

    def __init__(self, specs: Mapping[str, ArraySpec], make_staging: MakeStaging = PinnedRing) -> None:
        self._make_staging = make_staging
        self.arrays = make_arrays(specs, "cuda")
        self._flat = {n: t.view(-1) for n, t in self.arrays.items()}
        # Made before the first step: to allocate pinned memory may wait for a device that stands at a gate.
        self._staging = {lane: WriteStaging(LEAST_WORDS, make_staging) for lane in (SCHEDULE, PLAN)}

    def write(self, lane: Lane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]) -> None:
        mine = own_lane(lane, CudaLane, name)
        flat = self._flat.get(name)
        if flat is None:
            raise InputError(f"no table '{name}'; tables: {', '.join(self._flat)}")
        with mine.current:
            self._staging_for(3 * len(cells), mine).write(flat, cells, values, mine.stream)

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        torch.cuda.synchronize()
        return self.arrays[name].cpu().numpy()

    def _staging_for(self, words: int, lane: CudaLane) -> WriteStaging:
        """The lane's own staging: two lanes that write at a time would scatter each other's words.

        Grown (rarely) to hold that many words; the old memory is done with before it is let go.
        """
        staging = self._staging.get(lane.name)
        if staging is None or staging.words < words:
            lane.synchronize()
            staging = WriteStaging(max(LEAST_WORDS, 1 << (words - 1).bit_length()), self._make_staging)
            self._staging[lane.name] = staging
        return staging


class HostTables:
    """Tables in host memory; a write is a scatter on the lane's thread."""

    def __init__(self, specs: Mapping[str, ArraySpec]) -> None:
        self.arrays = make_arrays(specs, "cpu")
        self._flat = {n: t.view(-1).numpy() for n, t in self.arrays.items()}
        self._writers: dict[str, set[WorkerLane]] = {n: set() for n in self.arrays}

    def write(self, lane: Lane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]) -> None:
        mine = own_lane(lane, WorkerLane, name)
        flat = self._flat.get(name)
        if flat is None:
            raise InputError(f"no table '{name}'; tables: {', '.join(self._flat)}")
        mine.check()
        self._writers[name].add(mine)
        mine.submit(lambda: flat.__setitem__(cells, values))

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        for lane in self._writers[name]:
            lane.synchronize()
        return self.arrays[name].numpy().copy()
