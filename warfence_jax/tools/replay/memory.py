"""The memory of a replay on JAX: arrays with handles, whose writes donate, and host memory that device arrays alias.

A handle means, at a call, the version that is current then. Executables that take one version are dispatched in the order of
their calls, as by one thread; the runtime then holds a donation until all that took the version before are done, and refuses
whoever comes with a version that was donated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jax import Array, Device

from warfence.core.errors import DeadHandleError
from warfence.host.lanes import WorkerLane
from warfence.races.replay.gates import StepGates
from warfence.races.replay.host_machine import chunks
from warfence.races.replay.machine import Part, Seen, value_of
from warfence.races.scenarios.operations import Op
from warfence_jax.aliased import aligned_zeros
from warfence_jax.tools.replay.executables import RUNS, WORDS, Access, Form, executable, padded

Range = tuple[int, int, int]  # begin, end and value of a write


class Layout(NamedTuple):
    """The form of an executable, the names of its operands, and of each access what it writes into operands."""

    form: Form
    operands: tuple[str, ...]
    ranges: list[list[Range]]


class Version:
    """One array between two donations. array: once the donation that makes it was done. takers: calls that take it."""

    def __init__(self, array: Array | None = None) -> None:
        self.array = array
        self.made = array is not None
        self.takers: list[_Run] = []


class Arrays:
    """Implements `warfence.races.replay.host_machine.Memory`. handles: cells of each memory that is an array with a handle."""

    def __init__(
        self, sizes: Mapping[str, int], handles: Mapping[str, int], device: Device, gates: StepGates, seen: Seen
    ) -> None:
        self.gates, self.seen = gates, seen
        self.changed = threading.Condition()
        self.running: set[_Run] = set()
        self.device = device
        self._sizes = {**sizes, **handles}
        self.cells = {name: aligned_zeros((padded(size),)) for name, size in sizes.items() if name not in handles}
        self._aliases = {name: jax.device_put(cells, device) for name, cells in self.cells.items()}
        for name, cells in self.cells.items():
            assert self._aliases[name].unsafe_buffer_pointer() == cells.ctypes.data, f"'{name}' was copied"
        self.versions = {
            name: Version(jax.device_put(np.zeros(padded(size), np.int32), device).copy())
            for name, size in handles.items()
        }
        self._views: dict[str, np.ndarray] = {}

    def bind(self, parts: Sequence[Part], lane: WorkerLane) -> Callable[[], None]:
        layout = self._layout(parts)
        operands = [self.versions.get(name, self._aliases.get(name)) for name in layout.operands]
        views = tuple(self._views.values())
        run = _Run(self, parts, layout, [one for one in operands if one is not None], views)
        for at in layout.form.donated:
            self.versions[layout.operands[at]] = run.results[at]
        return partial(run.go, lane)

    def prepare(self, calls: Iterable[Sequence[Sequence[Part]]]) -> None:
        """Compile what these calls will run."""
        for executables in calls:
            for accesses, _ in (chunk for parts in executables for chunk in chunks(parts)):
                if accesses:
                    executable(self._layout(accesses).form, self.device)

    def _layout(self, parts: Sequence[Part]) -> Layout:
        at: dict[str, int] = {}
        accesses: list[Access] = []
        ranges: list[list[Range]] = []
        for part in parts:
            reads: list[int] = []
            writes: dict[int, Range] = {}
            for named, one in zip(part.op.reaches, part.reaches[: len(part.op.reaches)], strict=True):
                name = one.memory if one.memory in self.cells else named.memory
                if named.verb == "reads":
                    reads.append(at.setdefault(name, len(at)))
                elif named.verb != "allocates" and name not in self.cells:
                    writes[at.setdefault(name, len(at))] = (named.begin, named.end, value_of(part.id))
            accesses.append((tuple(reads), tuple(writes)))
            ranges.append([*writes.values()])
        return Layout(Form(tuple(accesses), tuple(padded(self._sizes[name]) for name in at)), tuple(at), ranges)

    def host(self, part: Part) -> None:
        self.keep_read(part, [self.cells[one.memory] for one in part.reaches if one.verb == "reads"])
        self.write(part)

    def names(self, op: Op) -> None:
        version = self.versions[op.memory]
        if op.kind == "keeps":
            self.versions[op.other] = version
        elif op.kind == "drops":
            self._views.pop(op.memory)
        else:
            with self.changed:
                self.changed.wait_for(lambda: version.made)
            self._views[op.memory] = np.asarray(version.array)

    def settle(self) -> str:
        said = {run.settled() for run in list(self.running)}
        return "busy" if "busy" in said else "runtime" if "runtime" in said else ""

    def final(self) -> Mapping[str, tuple[int, ...]]:
        arrays = {name: version.array for name, version in self.versions.items()}
        held = {
            name: np.asarray(array) for name, array in arrays.items() if array is not None and not array.is_deleted()
        }
        return {name: tuple(map(int, cells[: self._sizes.get(name)])) for name, cells in {**self.cells, **held}.items()}

    def keep_read(self, part: Part, read: Sequence[np.ndarray]) -> None:
        """Note what the reads of an access saw, each given as the whole memory."""
        reads = [(at, one) for at, one in enumerate(part.op.reaches) if one.verb == "reads"]
        for (at, one), cells in zip(reads, read, strict=False):
            self.seen[part.id, at] = tuple(map(int, cells[one.begin : one.end]))

    def write(self, part: Part) -> None:
        """Write the host memory of an access in place."""
        for one in part.reaches:
            if one.verb == "writes" and one.memory in self.cells:
                self.cells[one.memory][one.begin : one.end] = value_of(part.id)


class _Run:
    """One call of an executable."""

    def __init__(
        self, memory: Arrays, parts: Sequence[Part], layout: Layout, operands: list[Version | Array],
        views: tuple[np.ndarray, ...],
    ) -> None:  # fmt: skip
        self._memory, self._parts, self._operands = memory, parts, operands
        self._views = (
            views  # alive at the call, so they are at the dispatch, which comes later than the host's next calls
        )
        self._form, self._ranges = layout.form, layout.ranges
        self.results = {at: Version() for at in layout.form.donated}
        self.started = False  # its first gate was reached, so it holds its operands
        self._at: int | None = None
        self._before = [(one, tuple(one.takers)) for one in operands if isinstance(one, Version)]
        for version, _ in self._before:
            version.takers.append(self)

    def go(self, lane: WorkerLane) -> None:
        """On the lane's thread: stand until it may be dispatched, then run to the end."""
        lane.stand(self._ready, self._await_ready)
        number = RUNS.add(self)
        self._memory.running.add(self)
        try:
            lane.stand(lambda: False, lambda: self._call(number))
        finally:
            self._views = ()
            self._memory.running.discard(self)
            RUNS.remove(number)
            with self._memory.changed:
                self.started = True
                for version in self.results.values():
                    version.made = True
                self._memory.changed.notify_all()

    def enter(self, access: int) -> None:
        with self._memory.changed:
            self.started = True
            self._memory.changed.notify_all()
        self._at = self._parts[access].id
        self._memory.gates.block(self._at)
        self._at = None

    def leave(self, access: int, read: list[np.ndarray]) -> None:
        part = self._parts[access]
        self._memory.keep_read(part, read)
        self._memory.write(part)
        self._memory.gates.finish(part.id)

    def settled(self) -> str:
        """Empty when it stands at a gate, `runtime` when a donation may be what holds it."""
        if self._at is not None and self._memory.gates.holds(self._at):
            return ""
        return "busy" if self.started or not self.results else "runtime"

    def _ready(self) -> bool:
        return all(version.made and all(run.started for run in takers) for version, takers in self._before)

    def _await_ready(self) -> None:
        with self._memory.changed:
            self._memory.changed.wait_for(self._ready)

    def _call(self, number: int) -> None:
        words = np.zeros((len(self._parts), self._form.words), np.int32)
        for at, ranges in enumerate(self._ranges):
            flat = [word for one in ranges for word in one]
            words[at, : WORDS + len(flat)] = (number, at, *flat)
        arrays = [self._array(one) for one in self._operands]
        _, *written = jax.block_until_ready(executable(self._form, self._memory.device)(words, *arrays))
        for at, array in zip(self._form.donated, written, strict=True):
            self.results[at].array = array

    def _array(self, operand: Version | Array) -> Array:
        array = operand.array if isinstance(operand, Version) else operand
        if array is None:
            raise DeadHandleError("the donation that was to make this array failed")
        return array
