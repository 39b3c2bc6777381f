"""Scenarios under `watch_host`: numpy arrays that programs alias, handles and donation, on the CPU client.

A cell takes 64 bytes, so that any part of an array starts where the client aliases it. A lane is a thread that dispatches: its
calls run in order, and lanes are behind each other by data alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from warfence.core.errors import InputError
from warfence.races.check.findings import Findings
from warfence.races.replay.caller import call_all
from warfence.races.replay.gates import StepGates
from warfence.races.replay.host_machine import chunks
from warfence.races.replay.machine import Part, Stand, value_of
from warfence.races.replay.parts import donates
from warfence.races.scenarios.operations import Memories, Op
from warfence.races.scenarios.program import HOST
from warfence.races.scenarios.steps import Trace
from warfence_jax.aliased import ALIGNMENT, aligned_zeros
from warfence_jax.tools.replay.cpu import CUT, NO_BLOCKS
from warfence_jax.tools.watch.watching import HostWatch, watch_host

WAITS = "no lane waits for another one here but for its data"
TABLES = "an array is changed by donation only; a table that several lanes use is memory of the host"
IN_VAIN = "the host waits for outputs, which it then has: no such wait is in vain"
RESULTS = "a program writes no memory of the host"
CELL = ALIGNMENT // 4  # int32


class HostWatchPlayer:
    """Implements `warfence.races.replay.judged.Player`."""

    def lacks(self, trace: Trace, memories: Memories) -> str:
        if any(op.kind in ("waits", "takes") for op in trace.ops):
            return WAITS
        if any(op.kind in ("syncs", "polls") and op.other for op in trace.ops):
            return IN_VAIN
        if any((op.kind == "allocates" and op.lane != HOST) or op.kind == "frees" for op in trace.ops):
            return NO_BLOCKS
        if donates(trace) and any(step.kind == "records" for op in trace.ops for step in op.steps):
            return CUT
        users: dict[str, set[str]] = {}
        for step in trace.steps:
            for one in step.reaches:
                kind = memories.kind.get(one.memory.partition(",")[0], "pinned")
                if kind == "table":
                    users.setdefault(one.memory, set()).add(step.lane)
                elif kind == "pinned" and one.verb == "writes" and step.lane != step.thread:
                    return RESULTS
        return TABLES if any(len(lanes) > 1 for lanes in users.values()) else ""

    def play(self, trace: Trace, memories: Memories) -> Findings:
        """Play under a watch and check. DeadHandleError: a handle is used after its donation."""
        with jax.default_device(jax.devices("cpu")[0]), watch_host() as w:
            call_all(trace, _Calls(w, memories))
            return w.check()


class _Calls:
    """Implements `warfence.races.replay.machine.Lanes`. Every executable is one call of a jitted function."""

    def __init__(self, w: HostWatch, memories: Memories) -> None:
        self.gates = StepGates()
        self.gates.release()
        self._w, self._memories = w, memories
        self._arrays = {name: jnp.arange(memories.size[name] * CELL) + 1 for name in memories.arrays}
        self._tables: dict[str, Array] = {}  # the last output that stands for what is in a table
        self._host: dict[str, np.ndarray] = {}
        self._views: dict[str, np.ndarray] = {}
        self._last: dict[str, Any] = {}  # outputs of each lane
        self._held: dict[str, Any] = {}  # outputs that each event stands for

    def launch(self, lane: str, executables: Sequence[Sequence[Part]]) -> None:
        for parts in executables:
            for accesses, event in chunks(parts):
                if accesses:
                    self._call(lane, accesses)
                if event:
                    self.record(lane, event)

    def _call(self, lane: str, parts: Sequence[Part]) -> None:
        reaches = [pair for part in parts for pair in zip(part.op.reaches, part.reaches, strict=False)]
        given = {named.memory: self._arrays[named.memory] for named, _ in reaches if named.verb == "donates"}
        reads = []
        for named, one in reaches:
            if named.verb == "reads" and named.memory not in given:
                reads.append(self._read(named.memory, one.memory, one.begin, one.end))
        taken = [one for one in reads if one is not None]
        token, changed = self._w.call(_run, taken, given, lane=lane, stage=parts[0].name, donated=(1,) if given else ())
        self._arrays |= changed
        self._tables |= {one.memory: token for named, one in reaches if named.verb == "writes"}
        self._last[lane] = token

    def _read(self, name: str, memory: str, begin: int, end: int) -> Array | np.ndarray | None:
        if name in self._arrays:
            return self._arrays[name]
        if self._memories.kind.get(name, "pinned") == "table":
            return self._tables.get(memory)
        return self._part(memory, begin, end)

    def _part(self, memory: str, begin: int, end: int) -> np.ndarray:
        """Cells of memory of the host, which is made, and watched, at first use."""
        if memory not in self._host:
            cells = self._memories.size[memory.partition(",")[0]]
            self._host[memory] = self._w.guard(aligned_zeros((cells * CELL,)), memory)
        return self._host[memory][begin * CELL : end * CELL]

    def host(self, part: Part) -> None:
        """What the host reads no program writes."""
        for one in part.reaches:
            if one.verb == "writes":
                with self._w.writing(self._part(one.memory, one.begin, one.end)) as cells:
                    cells[:] = value_of(part.id)

    def record(self, lane: str, event: str) -> None:
        self._held[event] = self._last.get(lane)

    def wait(self, lane: str, event: str, launch: int = 0) -> None:
        raise InputError(WAITS)

    def wait_lane(self, lane: str, other: str) -> None:
        raise InputError(WAITS)

    def await_record(self, lane: str, event: str, number: int) -> None:
        raise InputError(WAITS)

    def sync(self, event: str) -> Stand:
        return self._until(self._held.get(event))

    def sync_lane(self, lane: str) -> Stand:
        return self._until(self._last.get(lane))

    def _until(self, outputs: Any) -> Stand:
        """Waiting for what was there before any call waits for nothing."""
        return Stand(lambda: outputs is None, partial(self._w.wait, outputs))

    def names(self, op: Op) -> None:
        if op.kind == "keeps":
            self._arrays[op.other] = self._arrays[op.memory]
        elif op.kind == "views":
            self._views[op.memory] = np.asarray(self._arrays[op.memory])
        elif op.kind == "drops":
            self._views.pop(op.memory)

    def close(self) -> None:
        """The watch lets everything go."""


@partial(jax.jit, donate_argnums=1)
def _run(reads: list[Array], given: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
    """A program that reads all it is given, and writes what is donated."""
    token = jnp.zeros(1, jnp.int32) + sum(one.sum() for one in reads)
    return token, {name: array.at[0].set(5) for name, array in given.items()}
