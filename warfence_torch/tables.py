"""The shared tables as torch tensors, written in place. Only the fence guards them: a wrong policy is silent here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int32
from torch import Tensor

from warfence.backend import PLAN, SCHEDULE, ArraySpec
from warfence.errors import InputError
from warfence.lanes import WorkerLane
from warfence_torch.fresh import FreshStaging
from warfence_torch.lanes_cuda import CudaLane
from warfence_torch.staging import PinnedRing

LEAST_WORDS = 4096  # of a lane's staging: 2048 cells a write before it has to grow
WRITES_AHEAD = 8  # writes that the host can be ahead before it has to wait for an upload


def make_arrays(specs: Mapping[str, ArraySpec], device: str) -> dict[str, Tensor]:
    """Zeroed tensors for the specs."""
    kinds = {"int32": torch.int32, "float32": torch.float32}
    return {n: torch.zeros(s.shape, dtype=kinds[s.dtype], device=device) for n, s in specs.items()}


@dataclass(slots=True)
class WriteStaging:
    """What one lane's writes pass through: pinned memory, and words on the device. Never another lane's."""

    ring: PinnedRing | FreshStaging
    device_words: Int32[Tensor, " n"]

    @classmethod
    def make(cls, words: int, make_staging: type[PinnedRing | FreshStaging] = PinnedRing) -> WriteStaging:
        return cls(make_staging(words, depth=WRITES_AHEAD), torch.empty(words, dtype=torch.int32, device="cuda"))


class CudaTables:
    """Tables on the device; a write is one upload of (cells, values) and one scatter on the lane's stream."""

    def __init__(
        self, specs: Mapping[str, ArraySpec], make_staging: type[PinnedRing | FreshStaging] = PinnedRing
    ) -> None:
        self._make_staging = make_staging
        self.arrays = make_arrays(specs, "cuda")
        self._flat = {n: t.view(-1) for n, t in self.arrays.items()}
        # Made before the first step: to allocate pinned memory may wait for a device that stands at a gate.
        self._staging = {lane: WriteStaging.make(LEAST_WORDS, make_staging) for lane in (SCHEDULE, PLAN)}

    def write(self, lane: CudaLane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]) -> None:
        flat = self._flat.get(name)
        if flat is None:
            raise InputError(f"no table '{name}'; tables: {', '.join(self._flat)}")
        n = len(cells)
        with lane.current, torch.inference_mode():
            staging = self._staging_for(3 * n, lane)
            packed = np.empty(
                3 * n, np.int32
            )  # the cells as int64, as a scatter takes them, so that nothing is converted there
            packed[: 2 * n].view(np.int64)[:] = cells
            packed[2 * n :] = values
            words = staging.device_words
            staging.ring.upload(packed, words, lane.stream)
            flat.index_copy_(0, words[: 2 * n].view(torch.int64), words[2 * n : 3 * n])

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        torch.cuda.synchronize()
        return self.arrays[name].cpu().numpy()

    def _staging_for(self, words: int, lane: CudaLane) -> WriteStaging:
        """The lane's own staging: two lanes that write at a time would scatter each other's words.

        Grown (rarely) to hold that many words; the old memory is done with before it is let go.
        """
        staging = self._staging.get(lane.name)
        if staging is None or staging.device_words.numel() < words:
            lane.synchronize()
            staging = WriteStaging.make(max(LEAST_WORDS, 1 << (words - 1).bit_length()), self._make_staging)
            self._staging[lane.name] = staging
        return staging


class HostTables:
    """Tables in host memory; a write is a scatter on the lane's thread."""

    def __init__(self, specs: Mapping[str, ArraySpec]) -> None:
        self.arrays = make_arrays(specs, "cpu")
        self._flat = {n: t.view(-1).numpy() for n, t in self.arrays.items()}
        self._writers: dict[str, set[WorkerLane]] = {n: set() for n in self.arrays}

    def write(
        self, lane: WorkerLane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]
    ) -> None:
        flat = self._flat.get(name)
        if flat is None:
            raise InputError(f"no table '{name}'; tables: {', '.join(self._flat)}")
        lane.check()
        self._writers[name].add(lane)
        lane.submit(lambda: flat.__setitem__(cells, values))

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        for lane in self._writers[name]:
            lane.synchronize()
        return self.arrays[name].numpy().copy()
