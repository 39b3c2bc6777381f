"""Python threads that start under a watch: what they touch of watched memory makes its verdict incomplete.

Nothing says when their operations ran against those of the watch's own thread, so they have no place in the log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from warfence_torch.tools.accesses import tensors
from warfence_torch.tools.callers import caller_lines
from warfence_torch.tools.watching.cuda_lanes import CudaLanes
from warfence_torch.tools.watching.journal import Journal
from warfence_torch.tools.watching.memory import Memory
from warfence_torch.tools.watching.mode import WatchMode
from warfence_torch.tools.watching.patches import Patches


class Threads:
    """Puts a mode of its own on each thread that starts."""

    def __init__(self, journal: Journal, memory: Memory, cuda: CudaLanes) -> None:
        self._journal, self._memory, self._cuda = journal, memory, cuda
        self._counting = threading.Lock()
        self.running = 0  # threads with a mode on, which nobody else can take off

    def install(self, patches: Patches) -> None:
        patches.wrap(threading.Thread, "run", self._run)

    def _run(self, original: Callable[..., None], thread: threading.Thread) -> None:
        with self._counting:
            self.running += 1
        try:
            with ThreadMode(self._journal, self._memory, self._cuda):
                original(thread)
        finally:
            with self._counting:
                self.running -= 1


class ThreadMode(WatchMode):
    """Notes nothing but that watched memory was touched. What a host lane's thread does for its lane is seen elsewhere."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if self._journal.slot is None and any(map(self._memory.meets, tensors((args, tuple(kwargs.values()), out)))):
            self._journal.miss(
                f"What thread '{threading.current_thread().name}' does with watched memory at {caller_lines()}: nothing tells "
                f"when it ran; say it with `touch` in the watch's own thread, or let a host lane do it."
            )
        return out
