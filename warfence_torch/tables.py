"""The shared tables as torch tensors, written in place. Only the fence guards them: a wrong policy is silent here."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Int32
from torch import Tensor

from warfence.backend import ArraySpec
from warfence.errors import InputError
from warfence.lanes import WorkerLane
from warfence_torch.lanes_cuda import CudaLane
from warfence_torch.staging import PinnedRing


def make_arrays(specs: Mapping[str, ArraySpec], device: str) -> dict[str, Tensor]:
    """Zeroed tensors for the specs."""
    kinds = {"int32": torch.int32, "float32": torch.float32}
    return {n: torch.zeros(s.shape, dtype=kinds[s.dtype], device=device) for n, s in specs.items()}


class CudaTables:
    """Tables on the device; a write is one upload of (cells, values) and one scatter on the schedule stream."""

    def __init__(self, specs: Mapping[str, ArraySpec]) -> None:
        self.arrays = make_arrays(specs, "cuda")
        self._flat = {n: t.view(-1) for n, t in self.arrays.items()}
        self._staging: PinnedRing | None = None
        self._device_words = torch.empty(0, dtype=torch.int32, device="cuda")

    def write(self, lane: CudaLane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]) -> None:
        flat = self._flat.get(name)
        if flat is None:
            raise InputError(f"no table '{name}'; tables: {', '.join(self._flat)}")
        n = len(cells)
        with torch.cuda.stream(lane.stream), torch.inference_mode():
            staging = self._staging_for(2 * n, lane)
            staging.upload(np.concatenate([cells, values]), self._device_words, lane.stream)
            flat.index_copy_(0, self._device_words[:n].long(), self._device_words[n : 2 * n])

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        torch.cuda.synchronize()
        return self.arrays[name].cpu().numpy()

    def _staging_for(self, words: int, lane: CudaLane) -> PinnedRing:
        """The staging memory, grown (rarely) to hold that many words; the old one is done with before it is let go."""
        if self._staging is None or self._device_words.numel() < words:
            lane.synchronize()
            size = 1 << max(12, (words - 1).bit_length())
            self._staging = PinnedRing(size, depth=8)
            self._device_words = torch.zeros(size, dtype=torch.int32, device="cuda")
        return self._staging


class HostTables:
    """Tables in host memory; a write is a scatter on the schedule lane's thread."""

    def __init__(self, specs: Mapping[str, ArraySpec]) -> None:
        self.arrays = make_arrays(specs, "cpu")
        self._flat = {n: t.view(-1).numpy() for n, t in self.arrays.items()}
        self._last_writer: dict[str, WorkerLane] = {}

    def write(
        self, lane: WorkerLane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]
    ) -> None:
        flat = self._flat.get(name)
        if flat is None:
            raise InputError(f"no table '{name}'; tables: {', '.join(self._flat)}")
        lane.check()
        self._last_writer[name] = lane
        lane.submit(lambda: flat.__setitem__(cells, values))

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        if name in self._last_writer:
            self._last_writer[name].synchronize()
        return self.arrays[name].numpy().copy()
