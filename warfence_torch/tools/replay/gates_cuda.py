"""Gates of accesses on streams, and events that are awaited by number: words of pinned memory that streams wait for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from warfence.core.errors import FenceError
from warfence.host.cuda import driver
from warfence.races.replay.gates import StandAt, StepGates
from warfence_torch.gates_cuda import CudaGates


class StreamGates:
    """Implements `warfence.races.replay.machine.Gates`. on_streams: accesses of lanes; all others are those of host threads.

    Each access on a stream has a gate in front of it, and behind it one that is never closed, which tells that it has run.
    """

    def __init__(self, on_streams: Sequence[int]) -> None:
        self._on_streams = frozenset(on_streams)
        self._host = StepGates()
        self._device = CudaGates(tuple(name for one in on_streams for name in (_gate(one), _done(one))))
        for one in on_streams:
            self._device.close(_gate(one))

    def enqueue(self, step: int, stream: torch.cuda.Stream) -> None:
        """Put the gate on a stream, inside a capture or not."""
        self._device.capture(_gate(step), stream)

    def enqueue_done(self, step: int, stream: torch.cuda.Stream) -> None:
        """Put what tells that the access has run on a stream, inside a capture or not."""
        self._device.capture(_done(step), stream)

    def open(self, step: int) -> None:
        if step in self._on_streams:
            self._device.open(_gate(step))
        else:
            self._host.open(step)

    def release(self) -> None:
        self._host.release()
        self._device.open_all()

    def finished(self, step: int) -> bool:
        return self._reached(_done(step)) if step in self._on_streams else self._host.finished(step)

    def count(self) -> int:
        return self._host.count() + sum(map(self._reached, self._device.positions))

    def pass_through(self, step: int, stand: StandAt) -> None:
        self._host.pass_through(step, stand)

    def finish(self, step: int) -> None:
        self._host.finish(step)

    def _reached(self, position: str) -> bool:
        try:
            self._device.await_reached(position, timeout_s=0)
        except FenceError:
            return False
        return True


class NoGates(StepGates):
    """The gates of a run that nobody forces: all open, and no call for a stream."""

    def __init__(self) -> None:
        super().__init__()
        self.release()

    def enqueue(self, step: int, stream: torch.cuda.Stream) -> None:
        """Nothing."""

    def enqueue_done(self, step: int, stream: torch.cuda.Stream) -> None:
        """Nothing."""


class Awaited:
    """A word for each record that somebody awaits by its number, wherever the record is called."""

    def __init__(self, records: Iterable[tuple[str, int]]) -> None:
        self._at = {record: i for i, record in enumerate(dict.fromkeys(records))}
        self._words = torch.zeros(max(len(self._at), 1), dtype=torch.int32).pin_memory()
        self._numpy = self._words.numpy()  # writes through numpy are plain host stores

    def record(self, stream: torch.cuda.Stream, event: str, number: int) -> None:
        """Enqueue that this record is done, inside a capture or not. Nothing where nobody awaits it."""
        if (event, number) in self._at:
            cuda = driver()
            _checked(cuda.cuStreamWriteValue32(cuda.CUstream(stream.cuda_stream), self._address(event, number), 1, 0))

    def wait(self, stream: torch.cuda.Stream, event: str, number: int) -> None:
        """Enqueue the wait for this record."""
        cuda = driver()
        handle, least = cuda.CUstream(stream.cuda_stream), int(cuda.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ)
        _checked(cuda.cuStreamWaitValue32(handle, self._address(event, number), 1, least))

    def release(self) -> None:
        """Let everybody go."""
        self._numpy[:] = 1

    def _address(self, event: str, number: int) -> int:
        return self._words.data_ptr() + 4 * self._at[event, number]


def _checked(result: Any) -> None:
    status = result[0] if isinstance(result, tuple) else result
    if int(status) != 0:
        raise FenceError(f"CUDA stream memory operation failed: {status}")


def _gate(step: int) -> str:
    return f"step {step}"


def _done(step: int) -> str:
    return f"step {step} done"
