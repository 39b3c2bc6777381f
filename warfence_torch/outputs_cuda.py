"""Results of launches on their way from the device, and what each launch took there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor

from warfence_torch.staging import DEPTH

OutputKind = tuple[str, tuple[int, ...], bool]  # name, shape, whether it is float32 (else int32)


@dataclass(slots=True)
class OutputSlot:
    """Where one launch leaves its results, and the events at both ends of its time on the stream."""

    words: Tensor  # pinned, int32: all outputs, one after another
    start: torch.cuda.Event
    end: torch.cuda.Event


class OutputSlots:
    """A free list: slots for as many launches as the host gets ahead, made before the first step, and more where it must."""

    def __init__(self, words: int) -> None:
        self._words = words
        self._free = [self._make() for _ in range(DEPTH)]

    def take(self) -> OutputSlot:
        return self._free.pop() if self._free else self._make()

    def give(self, slot: OutputSlot) -> None:
        self._free.append(slot)

    def _make(self) -> OutputSlot:
        words = torch.zeros(self._words, dtype=torch.int32).pin_memory()
        return OutputSlot(words, torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))


class CudaOutputs:
    """Results of one launch in a slot that no later launch uses before they were read."""

    def __init__(self, launch: int, slot: OutputSlot, slots: OutputSlots, kinds: list[OutputKind]) -> None:
        self.launch = launch
        self.device_s: float | None = None
        self._slot, self._slots, self._kinds = slot, slots, kinds
        self._result: dict[str, np.ndarray] | None = None

    def result(self) -> Mapping[str, np.ndarray]:
        if self._result is None:
            self._slot.end.synchronize()
            self.device_s = self._slot.start.elapsed_time(self._slot.end) / 1e3
            words = self._slot.words.numpy().copy()
            self._result = {}
            for name, shape, is_float in self._kinds:
                flat, words = words[: prod(shape)], words[prod(shape) :]
                self._result[name] = (flat.view(np.float32) if is_float else flat).reshape(shape)
            self._slots.give(self._slot)  # the slot can serve another launch now
        return self._result
