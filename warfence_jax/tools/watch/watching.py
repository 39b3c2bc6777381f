"""What dispatched programs may still do with host memory and with donated handles, as an event log for the checker.

A call reads its arguments at any time until its outputs are there. Calls of one lane run in the order of dispatch; a call
that takes another one's output runs behind it; the host is behind a call only once it waited for one of its outputs.
Waiting for what `device_put` returned waits for nothing that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from warfence.core.errors import DeadHandleError
from warfence.races.check.events import HOST, Event, Kind
from warfence.races.check.findings import Findings, check
from warfence.races.check.log_file import Log, write_log
from warfence.races.check.places import call_site
from warfence_jax.tools.watch.handles import Handle, Handles
from warfence_jax.tools.watch.memory import HostMemory, Span, pointer

UNSEEN = (
    "Only calls, waits and writes that went through the watch. Numpy refuses other writes to a watched array, but not those "
    "of a view that was made before it was watched, nor those of C code.",
    "Calls of one lane count as run in order, as the CPU client does with one thread's programs, and a GPU with its stream.",
    "A copy by device_put counts as over when it returns, as measured on the CPU client.",
)

IN_USE = "its memory is in use: a numpy or dlpack view of it is alive, or it is memory of the host; safe by copy"
NO_OUTPUT = "no output has its shape and type (no input_output_alias), so its memory cannot be taken over; safe by copy"


@dataclass(frozen=True)
class Refused:
    """A donation that the runtime did not take: the call wrote to other memory, which is safe, by copy.

    why: what the runtime makes known of it.
    """

    stage: str
    argument: int
    why: str
    where: str


class _Call(NamedTuple):
    """One call: where it was dispatched, its number, name and place, and the event that its outputs stand for."""

    lane: str
    number: int
    stage: str
    place: str
    done: str


class HostWatch:
    """The log of one watch. refused: donations that were not taken."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.refused: list[Refused] = []
        self.memory = HostMemory()
        self._handles = Handles(self.memory)
        self._calls = 0

    def guard(self, array: np.ndarray, name: str) -> np.ndarray:
        """Watch a numpy array: it is read-only from here on, but inside `writing`. Returns it."""
        self.memory.guard(array, name)
        return array

    def put(self, array: np.ndarray, name: str, device: jax.Device | None = None) -> Array:
        """`jax.device_put` of a numpy array that is watched from here on. `aliases` says whether it aliases."""
        placed: Array = jax.device_put(array, device)
        self.memory.guard(array, name)
        if not self.aliases(placed):
            span = self.memory.of(array)
            assert span is not None
            self._append("read", HOST, 0, f"copy {name}", span, call_site(2))
        return placed

    def aliases(self, array: Array) -> bool:
        """Whether a device array lies in memory that is watched."""
        return self.memory.of(array) is not None

    @contextmanager
    def writing(self, array: np.ndarray) -> Iterator[np.ndarray]:
        """The host writes a watched array, or a view of one, inside; everywhere else numpy refuses to."""
        place = call_site(3)
        with self.memory.writable(array) as span:
            self._append("write", HOST, 0, f"write {span.resource}", span, place)
            begun = len(self.events)
            yield array
            if len(self.events) > begun:  # what was called meanwhile may have been overtaken by a part of the write
                self._append("write", HOST, 0, f"write {span.resource}", span, place)

    def call(
        self, fn: Callable[..., Any], *args: Any, lane: str = "forward", stage: str = "", donated: Sequence[int] = ()
    ) -> Any:
        """Call a jitted or compiled function and log what it may read and write until its outputs are there.

        lane: what stands for the thread that dispatches. donated: the arguments that `fn` donates. DeadHandleError for a
        handle that was donated before, with both places; a donation that is not taken goes to `refused`.
        """
        place, stage = call_site(2), stage or getattr(fn, "__name__", "call")
        self._calls += 1
        number, done = self._calls, f"outputs of call {self._calls}"
        taken = [leaf for leaf in jax.tree.leaves(args) if isinstance(leaf, np.ndarray | Array)]
        handles = [self._handles.of(leaf) for leaf in taken]
        for handle in handles:
            if handle.donor:
                raise DeadHandleError(
                    f"'{stage}' at {place} takes {handle.span.resource}, a handle that {handle.donor} has donated: its "
                    f"memory has another owner; a handle has one donor, so hand on the array that its call returned"
                )
        giving = {id(leaf): i for i in donated for leaf in jax.tree.leaves(args[i]) if isinstance(leaf, Array)}
        pairs = list(zip(taken, handles, strict=True))
        memory = {pointer(leaf): handle.span for leaf, handle in pairs if id(leaf) in giving}
        for _, handle in pairs:
            self.events += handle.waits(lane, False, place)
        for leaf, handle in pairs:
            if id(leaf) not in giving:  # before the call, for a call may block its thread, and other threads go on
                self._append("read", lane, number, stage, handle.span, place)
                handle.readers[lane] = done
        outputs = fn(*args)
        for leaf, handle in pairs:
            if isinstance(leaf, Array) and id(leaf) in giving:
                self._give(leaf, handle, _Call(lane, number, stage, place, done), giving[id(leaf)], outputs)
        for output in jax.tree.leaves(outputs):
            span = memory.get(pointer(output)) if memory else None
            handle = self._handles.given(output, (lane, done), span)
            self._append("write", lane, number, stage, handle.span, place)
        self.events.append(Event("record", lane, number, event=done, generation=1, where=place))
        return outputs

    def wait(self, outputs: Any) -> Any:
        """Block the host until the outputs of a call are there, to be read by it; returns them."""
        place = call_site(2)
        jax.block_until_ready(outputs)
        for leaf in jax.tree.leaves(outputs):
            handle = self._handles.output(leaf)
            if handle is not None and handle.made is not None:
                self.events.append(Event("host_sync", HOST, event=handle.made[1], where=place))
                self._append("read", HOST, 0, "wait", handle.span, place)
        return outputs

    def check(self) -> Findings:
        """What the checker finds in the log so far."""
        return check(Log(tuple(self.events), UNSEEN))

    def write(self, path: Path) -> None:
        """Write the log for `warfence check`."""
        write_log(path, self.events, UNSEEN)

    def _give(self, leaf: Array, handle: Handle, call: _Call, argument: int, outputs: Any) -> None:
        """What became of an argument that a call donates: a write behind all its readers, or a read, and a copy."""
        lane, number, stage, place, done = call
        if leaf.is_deleted():
            self.events += handle.waits(lane, True, place)
            self._append("write", lane, number, stage, handle.span, place)
            handle.donor = f"'{stage}' at {place}"
        else:
            self.refused.append(Refused(stage, argument, _why(leaf, outputs), place))
            self._append("read", lane, number, stage, handle.span, place)
            handle.readers[lane] = done

    def _append(self, kind: Kind, lane: str, launch: int, stage: str, span: Span, place: str) -> None:
        self.events.append(Event(kind, lane, launch, stage, *span, where=place))


def _why(array: Array, outputs: Any) -> str:
    """Why the runtime may not have taken a donation, as far as that can be told."""
    alike = any(o.shape == array.shape and o.dtype == array.dtype for o in jax.tree.leaves(outputs))
    return IN_USE if alike else NO_OUTPUT


@contextmanager
def watch_host() -> Iterator[HostWatch]:
    """A watch; numpy arrays that it guards are what they were again afterwards."""
    watch = HostWatch()
    try:
        yield watch
    finally:
        watch.memory.release()
