"""The shared tables, in two kinds.

Donated: a write is an executable that takes the table's memory over. Each write makes a new version, known on the
host at once and filled in when the write is dispatched. A forward captures the version that is current when its
load_batch is called. The runtime holds a write until every dispatched executable that took the old version has
finished, and refuses whoever comes with the old version later: a wrong policy shows as a held write or a dead handle,
never as a wrong token.

Aliased: the device array is a view of host memory that the schedule lane's thread writes. Nothing guards it but the
fence. This is the twin of torch's silent corruption (jax-ml/jax #37830: `device_put` aliases a writeable numpy
array).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, Device
from jax.stages import Compiled
from jaxtyping import Int32

from warfence.backend import ArraySpec
from warfence.errors import DeadHandleError, InputError
from warfence_jax.compiler import Compiler, on, token_of
from warfence_jax.devices import zeros
from warfence_jax.lanes import JaxLane, Promise

BUCKETS = (8, 64, 512, 4096)  # cells of one write executable; larger writes are split
NOWHERE = np.iinfo(np.int32).max  # an index that every scatter drops
ALIGNMENT = 64  # bytes; below it the CPU client copies instead of aliasing


class Version:
    """One table between two writes. `handle` is there once the write that makes the version was dispatched."""

    __slots__ = ("handle", "number", "promise", "table")

    def __init__(self, table: str, number: int, promise: Promise | None = None, handle: Array | None = None) -> None:
        self.table, self.number, self.promise, self.handle = table, number, promise, handle

    def dead(self) -> bool:
        return self.handle is None or self.handle.is_deleted()


class Tables(Protocol):
    """What a forward needs of the tables, besides the neutral interface."""

    specs: Mapping[str, ArraySpec]

    def capture(self, lane: JaxLane, names: Iterable[str]) -> dict[str, Version]:
        """The versions current now; their handles are there when later dispatches of the lane run."""
        ...

    def write(
        self, lane: JaxLane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]
    ) -> None: ...

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]: ...

    def report(self) -> Mapping[str, object]: ...


class DonatedTables:
    """Tables whose writes take the memory over (`warfence.backend.SharedTables`)."""

    def __init__(self, specs: Mapping[str, ArraySpec], device: Device, compiler: Compiler) -> None:
        self.specs = specs
        self.refused = 0  # dead handles
        self.copied = 0  # writes whose donation the runtime did not take: safe by copy
        self._device = device
        self._current = {n: Version(n, 0, handle=zeros(s, device)) for n, s in specs.items()}
        self._writes = {n: {b: _compile_write(n, s, b, device, compiler) for b in BUCKETS} for n, s in specs.items()}

    def capture(self, lane: JaxLane, names: Iterable[str]) -> dict[str, Version]:
        versions = {n: self._current[n] for n in names}
        for version in versions.values():
            if version.promise is not None:
                lane.await_dispatch(version.promise)
        return versions

    def write(self, lane: JaxLane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]) -> None:
        check_write(self.specs, name, cells, values)
        if not len(cells):
            return
        old = self._current[name]
        if old.promise is not None:
            lane.await_dispatch(old.promise)
        new = Version(name, old.number + 1)
        new.promise = lane.enqueue(self._device, partial(self._dispatch, old, new, cells, values))
        self._current[name] = new

    def _dispatch(
        self, old: Version, new: Version, cells: np.ndarray, values: np.ndarray, order: Array, wait: Array
    ) -> Array:
        if old.handle is None:
            raise DeadHandleError(f"write {new.number} of table '{new.table}': the write before it failed")
        handle = old.handle
        for start in range(0, len(cells), BUCKETS[-1]):
            part = slice(start, start + BUCKETS[-1])
            bucket = next(b for b in BUCKETS if b >= len(cells[part]))
            padded = np.full((2, bucket), NOWHERE, np.int32)
            padded[0, : len(cells[part])], padded[1, : len(cells[part])] = cells[part], values[part]
            handle, order = self._writes[new.table][bucket](handle, padded, order, wait)
        new.handle = handle
        self.copied += not old.handle.is_deleted()
        return order

    def executable(self, name: str, bucket: int) -> Compiled:
        """The write of one table for up to `bucket` cells. For tests that read its text."""
        return self._writes[name][bucket]

    def dead_handle(self, version: Version, launch: int, stage: str) -> DeadHandleError:
        """The error for a launch that came with a version whose memory a later write has taken."""
        self.refused += 1
        return DeadHandleError(
            f"launch {launch}, stage '{stage}': table '{version.table}' was captured as version {version.number}, "
            f"whose memory write {version.number + 1} has taken over. It was dispatched before the launch's last read; "
            f"let the schedule lane wait for the launch's ticket (the WAR barrier) before it writes"
        )

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        version = self._current[name]
        if version.promise is not None:
            version.promise.await_dispatch()
        if version.handle is None:
            raise DeadHandleError(f"table '{name}': write {version.number} failed, so there is nothing to copy")
        # A copy on the device first: a numpy view of the table itself would keep later writes from taking its memory.
        return np.array(jnp.copy(version.handle))

    def report(self) -> Mapping[str, object]:
        versions = {n: v.number for n, v in self._current.items()}
        return {"tables": "donated", "versions": versions, "refused": self.refused, "writes_copied": self.copied}


class AliasedTables:
    """Tables in host memory that device arrays alias; the schedule lane's thread writes them in place."""

    def __init__(self, specs: Mapping[str, ArraySpec], device: Device) -> None:
        self.specs = specs
        self._device = device
        self._host = {n: _aligned_zeros(s.shape) for n, s in specs.items()}
        self._versions = {n: Version(n, 0, handle=jax.device_put(a, device)) for n, a in self._host.items()}
        self._writes: dict[str, int] = dict.fromkeys(specs, 0)
        for name, array in self._host.items():
            handle = self._versions[name].handle
            if handle is None or handle.unsafe_buffer_pointer() != array.ctypes.data:
                raise InputError(f"table '{name}': this JAX copied the host memory instead of aliasing it")

    def capture(self, lane: JaxLane, names: Iterable[str]) -> dict[str, Version]:
        return {n: self._versions[n] for n in names}

    def write(self, lane: JaxLane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]) -> None:
        check_write(self.specs, name, cells, values)
        flat = self._host[name].reshape(-1)
        self._writes[name] += 1

        def scatter(order: Array, wait: Array) -> None:
            flat[cells] = values

        # No operand can hold a host write, so the lane's thread stands at the waits itself.
        self._versions[name].promise = lane.enqueue(self._device, scatter, blocking=True)

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        promise = self._versions[name].promise
        if promise is not None:
            promise.block()
        return self._host[name].copy()

    def report(self) -> Mapping[str, object]:
        return {"tables": "aliased", "versions": dict(self._writes), "refused": 0, "writes_copied": 0}


def check_write(specs: Mapping[str, ArraySpec], name: str, cells: np.ndarray, values: np.ndarray) -> None:
    """Raise InputError for a table that there is not, or cells outside of it."""
    if name not in specs:
        raise InputError(f"no table '{name}'; tables: {', '.join(specs)}")
    size = int(np.prod(specs[name].shape))
    if len(cells) != len(values):
        raise InputError(f"table '{name}': {len(cells)} cells but {len(values)} values in one write")
    if len(cells) and (cells.min() < 0 or cells.max() >= size):
        raise InputError(
            f"table '{name}': a write to cells {cells.min()} to {cells.max()}; allowed are 0 to {size - 1}"
        )


def _compile_write(name: str, spec: ArraySpec, bucket: int, device: Device, compiler: Compiler) -> Compiled:
    """The executable that writes up to `bucket` cells: (table, [cells, values], order, wait) -> (table, token)."""

    def write(table: Array, padded: Array, order: Array, wait: Array) -> tuple[Array, Array]:
        written = table.reshape(-1).at[padded[0]].set(padded[1], mode="drop").reshape(table.shape)
        return written, token_of(order, wait, [written])

    scalar = on(device, (), np.int32)
    arguments = [on(device, spec.shape, spec.dtype), on(device, (2, bucket), np.int32), scalar, scalar]
    return compiler.compile(f"write {name} {bucket}", write, arguments, donate=[0])[0]


def _aligned_zeros(shape: tuple[int, ...]) -> Int32[np.ndarray, "rows cols"]:
    """A zeroed int32 array whose memory starts where the CPU client can alias it."""
    nbytes = int(np.prod(shape)) * 4
    raw = np.zeros(nbytes + ALIGNMENT, np.uint8)
    offset = -raw.ctypes.data % ALIGNMENT
    return raw[offset : offset + nbytes].view(np.int32).reshape(shape)
