"""Sees every operation of one thread, and where it runs: on a stream, on a host lane, or on the host itself."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from warfence.races.check.events import HOST, Event
from warfence_torch.tools.accesses import accesses, key, tensors
from warfence_torch.tools.callers import caller_lines
from warfence_torch.tools.planting.stages import current_stage
from warfence_torch.tools.watching.cuda_lanes import CudaLanes
from warfence_torch.tools.watching.journal import Journal
from warfence_torch.tools.watching.memory import Memory

# Operations on a device whose result has a size that the host must know: they end in a synchronisation.
SIZED_BY_VALUE = {"nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive"}
BY_MASK = {"index", "index_put", "index_put_", "_index_put_impl_"}  # so do these, where an index is a mask


class _Known(NamedTuple):
    """What is the same for every call: the name without library, and the place of `non_blocking` among the arguments."""

    name: str
    non_blocking: int | None


@cache
def _known(func: Any) -> _Known:
    schema = getattr(func, "_schema", None)
    if schema is None:
        return _Known(str(func), None)
    places = [i for i, argument in enumerate(schema.arguments) if argument.name == "non_blocking"]
    return _Known(schema.name.removeprefix("aten::"), places[0] if places else None)


def staged(name: str) -> str:
    """An operation's name behind that of the stage it belongs to."""
    stage = current_stage()
    return f"{stage}/{name}" if stage else name


_thread = threading.local()  # the watch modes that a thread is in, the innermost last


def step_aside() -> None:
    """Take this thread's watch off, where it is the innermost mode: torch runs no compiled code under one."""
    modes = getattr(_thread, "modes", None)
    stepped = _thread.aside = modes[-1] if modes and _get_current_dispatch_mode() is modes[-1] else None
    if stepped is not None:
        stepped.__exit__(None, None, None)


def step_back() -> None:
    """Put it on again."""
    stepped, _thread.aside = getattr(_thread, "aside", None), None
    if stepped is not None:
        stepped.__enter__()


class WatchMode(TorchDispatchMode):
    """One for each thread. Notes what its operations touch of the watched memory, and which of them the host waits for."""

    supports_higher_order_operators = True  # cond and the like are one operation, which cannot be seen

    def __init__(self, journal: Journal, memory: Memory, cuda: CudaLanes) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._journal, self._memory, self._cuda = journal, memory, cuda

    def __enter__(self) -> Self:
        if not hasattr(_thread, "modes"):
            _thread.modes = []
        _thread.modes.append(self)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        _thread.modes.remove(self)
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        self._cuda.take_nodes()
        out = func(*args, **kwargs)
        self._cuda.skip_nodes()
        involved = list(tensors((args, tuple(kwargs.values()), out)))
        device = self._cuda.device_of(involved)
        if any(map(self._memory.meets, involved)):
            self._touch(func, args, kwargs, out, involved)
        if device is not None and _host_waits(_known(func), args, kwargs, out, self._cuda):
            self._cuda.host_waited(device)
        return out

    def _touch(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any, involved: list[Tensor]
    ) -> None:
        name, device = _known(func).name, self._cuda.device_of(involved)
        blocks = {key(t) for t in involved if t.is_cuda} if self._memory.blocks else ()
        if name == "record_stream" and blocks:
            self._memory.leave_out(key(args[0]))
        touches, unseen = accesses(func, args, kwargs, out)
        if unseen:
            self._journal.miss(f"Operation '{name}' at {caller_lines()}: {unseen}.")
        place, stage = "", name
        for kind, storage, begin, end, _ in touches:
            if storage in blocks:
                cells = self._memory.cells_of_block(storage, begin, end)
            else:
                cells = self._memory.cells(storage + begin, storage + end)
            for region, first, last in cells:
                if not place:
                    place, stage = caller_lines(), staged(name)
                event = Event(kind, HOST, 0, stage, region.name, first, last, where=place)
                at_call = (
                    kind == "read" and device is not None and not region.device and self._at_call(storage, involved)
                )
                self.note(event, None if at_call else device)

    def _at_call(self, storage: int, involved: list[Tensor]) -> bool:
        """The driver copies pageable memory before the call returns; pinned memory is read by the stream."""
        return not self._cuda.capturing and not any(key(t) == storage and t.is_pinned() for t in involved)

    def note(self, event: Event, device: int | None) -> None:
        """An access by the device's current stream; without a device by the host lane of this thread, or the host."""
        if device is not None:
            self._cuda.append(event._replace(lane=self._cuda.name(torch.cuda.current_stream(device))))
            return
        slot = self._journal.slot
        self._journal.append(event if slot is None else event._replace(lane=slot.lane))


def _host_waits(known: _Known, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any, cuda: CudaLanes) -> bool:
    """Whether an operation on a device returns only when it is done there."""
    if known.name in SIZED_BY_VALUE or (known.name in BY_MASK and _masks(args[1:2])):
        return True
    if isinstance(out, (bool, int, float)):  # such as `item` and `equal`
        return True
    at = known.non_blocking
    if at is None or all(cuda.device_of((t,)) is not None for t in (*tensors(args[:2]), *tensors(out))):
        return False  # not a copy, or one within the device
    if not kwargs.get("non_blocking", args[at] if len(args) > at else False):
        return True
    return any(cuda.device_of((t,)) is None and not t.is_pinned() for t in tensors(out))


def _masks(indices: Any) -> bool:
    return any(t.dtype in (torch.bool, torch.uint8) for t in tensors(indices))
