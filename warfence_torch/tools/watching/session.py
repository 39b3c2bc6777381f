"""`watch`: everything that a torch program does to some memory, as a log for `warfence check`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import torch

from warfence.core.errors import InputError
from warfence.races.check.events import HOST, Event
from warfence.races.check.findings import Findings, check
from warfence.races.check.log_file import Log, write_log
from warfence_torch.tools.callers import caller_lines
from warfence_torch.tools.compiled import as_written
from warfence_torch.tools.watching.compiled_calls import CompiledCalls
from warfence_torch.tools.watching.cuda_lanes import CudaLanes
from warfence_torch.tools.watching.host_lanes import HostLanes
from warfence_torch.tools.watching.journal import Journal
from warfence_torch.tools.watching.memory import Given, Memory, Watchable
from warfence_torch.tools.watching.mode import WatchMode, staged, step_aside, step_back
from warfence_torch.tools.watching.patches import Patches
from warfence_torch.tools.watching.threads import Threads
from warfence_torch.tools.watching.triton_launches import TritonLaunches

UNSEEN = (
    "An index or scatter counts as touching all of the tensor that it is applied to, and a strided view all from its first"
    " to its last cell: accesses of different rows may be reported as a race.",
    "Operations of threads that ran before the watch began, and waits of all that are neither the one that began it nor a host"
    " lane; calls of the driver, or of torch.Stream and torch.Event past torch.cuda.",
    "Launches outside of captured graphs that come neither through torch's dispatcher nor from Triton (the program's own, other"
    " libraries), but for what it says with `touch`.",
)
AS_WRITTEN = "Compiled functions: this torch has no place to step aside for them, so they ran as they were written."
UNSEEN_BLOCKS = "Memory that the allocator hands on before a stream is done with it; watch(..., blocks=True) sees it."
BLOCKS = (
    "What the allocator itself waits for: blocks with a recorded stream are left out, and memory that went back to the "
    "driver and came again may be reported as a race."
)
UNSEEN_HOST = (
    "Accesses of {} past torch (numpy, tolist, pointers), but for those that the program says with `touch`; all others are"
    " not in the log."
)


class Watch:
    """A watch, and its log once the `with` block is left. One thread enters it and makes the calls that count as the host's.

    Lanes are CUDA streams and `warfence.host.lanes.WorkerLane`s; the host is one too. The methods of torch.cuda's Event, Stream
    and CUDAGraph, torch.cuda.synchronize, WorkerLane and HostEvent are wrapped until the block is left, also by an error.

    shared, host: the memory to watch, as {name: tensor} or a list; host: pinned tensors and numpy arrays. path: where the
    log is written when the block is left. names: {stream, event or graph: name}. blocks: watch all other memory of CUDA
    devices too, so that a block which the allocator hands on too early is found; each operation then is in the log. later: there
    may be nothing to watch yet; `add` names it.
    """

    def __init__(
        self,
        shared: Given = (),
        host: Given = (),
        path: Path | str | None = None,
        names: Mapping[Any, str] | None = None,
        blocks: bool = False,
        later: bool = False,
    ) -> None:
        self._memory = Memory(shared, host, blocks, later)
        names = names or {}
        streams = {(s.device_index, s.stream_id): name for s, name in names.items() if isinstance(s, torch.cuda.Stream)}
        self._path = Path(path) if path is not None else None
        self._journal = Journal(names)
        self._cuda = CudaLanes(self._journal, streams, self._memory)
        make_mode = partial(WatchMode, self._journal, self._memory, self._cuda)
        self._host = HostLanes(self._journal, make_mode)
        self._triton = TritonLaunches(self._journal, self._memory, self._cuda)
        self._threads = Threads(self._journal, self._memory, self._cuda)
        self._compiled = CompiledCalls(partial(_aside, self._journal, self._cuda), step_back)
        self._patches, self._around_compiled = Patches(), Patches()
        self._mode = make_mode()
        self._written = ExitStack()
        self._ended = False
        for sentence in (*UNSEEN, BLOCKS if blocks else UNSEEN_BLOCKS):
            self._journal.limit(sentence)
        if on_host := self._memory.on_host:
            self._journal.limit(UNSEEN_HOST.format(", ".join(f"'{name}'" for name in on_host)))

    def __enter__(self) -> Self:
        if self._ended:
            raise InputError("this watch has ended; begin another one with watch(...)")
        self._cuda.install(self._patches)
        self._host.install(self._patches)
        self._triton.install(self._patches)
        self._threads.install(self._patches)
        if not self._compiled.install(self._around_compiled):
            self._written.enter_context(as_written())
            self._journal.limit(AS_WRITTEN)
        self._mode.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mode.__exit__(kind, error, trace)
        try:
            self._host.drain()
        finally:
            self._patches.restore()
            if not self._threads.running:  # else torch would give up the compiled functions that such a thread calls
                self._around_compiled.restore()
            self._written.close()
            self._cuda.forget()
            self._journal.forget()
            self._ended = True
            if self._path is not None:
                self.write(self._path)

    def add(self, name: str, one: Watchable) -> None:
        """Watch this tensor or array too, from here on. InputError for a name or memory that is watched already."""
        self._memory.add(name, one)

    def touch(self, name: str, kind: Literal["read", "write"], begin: int = 0, end: int | None = None) -> None:
        """Note an access that torch does not make: cells [begin, end) of the watched memory of that name; all by default.

        Of the current stream where the memory is on a device, else of the host lane whose work calls this, or of the host.
        """
        region = self._memory.region(name)
        cells = (region.end - region.begin) // region.itemsize
        end = cells if end is None else end
        if kind not in ("read", "write") or not 0 <= begin < end <= cells:
            raise InputError(
                f"touch of '{name}': {kind} of cells [{begin}, {end}); a 'read' or 'write' within [0, {cells})"
            )
        event = Event(kind, HOST, 0, staged("touch"), name, begin, end, where=caller_lines())
        self._mode.note(event, torch.cuda.current_device() if region.device else None)

    @property
    def log(self) -> Log:
        """All that was seen, and what could not be. InputError while the watch goes on: lanes may still be at work."""
        if not self._ended:
            raise InputError("the watch has not ended; take its log after the `with` block")
        return Log(self._journal.events(), self._journal.unseen, self._journal.missed)

    def write(self, path: Path | str) -> None:
        """Write the log for `warfence check`."""
        log = self.log
        write_log(Path(path), log.events, log.unseen, log.missed)

    def check(self) -> Findings:
        """What races in the log; the report's limits say what could not be seen."""
        return check(self.log)


def _aside(journal: Journal, cuda: CudaLanes) -> None:
    """A compiled function is called: it runs as it is compiled, and what it touches only a graph's nodes show."""
    step_aside()
    if not cuda.sees_nodes:
        journal.miss(
            f"What the compiled function called at {caller_lines()} reads and writes: it does not go through torch's "
            f"dispatcher; say it with `touch`, or watch it captured in a graph."
        )


watch = Watch
