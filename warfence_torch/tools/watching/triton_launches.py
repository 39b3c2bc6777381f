"""Eager launches of Triton's kernels under a watch: their tensors are arguments of the launch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from warfence.races.check.events import HOST, Event
from warfence_torch.tools.callers import caller_lines
from warfence_torch.tools.watching.cuda_lanes import CudaLanes
from warfence_torch.tools.watching.journal import Journal
from warfence_torch.tools.watching.memory import Memory
from warfence_torch.tools.watching.patches import Patches


class TritonLaunches:
    """Notes what a kernel is given of the watched memory. It is taken for a reader: what it does there nobody says."""

    def __init__(self, journal: Journal, memory: Memory, cuda: CudaLanes) -> None:
        self._journal, self._memory, self._cuda = journal, memory, cuda

    def install(self, patches: Patches) -> None:
        """Where Triton is installed."""
        if find_spec("triton") is not None:
            patches.wrap(import_module("triton.runtime.jit").JITFunction, "run", self._run)

    def _run(self, original: Callable[..., Any], kernel: Any, *args: Any, **kwargs: Any) -> Any:
        out = original(kernel, *args, **kwargs)
        if not kwargs.get("warmup") and not self._cuda.sees_nodes:
            for one in (*args, *kwargs.values()):
                self._note(getattr(kernel, "__name__", "kernel"), getattr(one, "base", one))
        return out

    def _note(self, name: str, given: Any) -> None:
        if not isinstance(given, Tensor):
            return
        begin = given.data_ptr()
        for region, first, _ in self._memory.cells(
            begin, given.untyped_storage().data_ptr() + given.untyped_storage().nbytes()
        ):
            where = caller_lines()
            self._journal.miss(
                f"Whether Triton's kernel '{name}', launched at {where}, writes '{region.name}': it was given it, and is taken "
                f"for a reader."
            )
            last = (region.end - region.begin) // region.itemsize
            lane = self._cuda.name(torch.cuda.current_stream()) if given.is_cuda else HOST
            self._cuda.append(Event("read", lane, 0, name, region.name, first, last, where=where))
