"""Tables whose writes donate: an executable takes the table's memory over and gives it back under a new handle.

Each write makes a new version, known on the host at once and filled in when the write is dispatched. A forward captures
the version that is current when its load_batch is called. The runtime holds a write until every executable that took the
old version has finished, and refuses whoever comes with the old version later: a wrong policy shows as a held write or a
dead handle, never as a wrong token.

All that goes by the order of dispatch. With one thread a lane that order would be a matter of luck, so a write is
dispatched after the readers that were enqueued before it, as in any JAX program of one thread. Writes of two lanes land in
the order of the calls, whether the lanes wait for each other or not: each takes the memory that the one before gives back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import Array, Device
from jax.stages import Compiled
from jaxtyping import Int32

from warfence.core.backend import ArraySpec, Lane
from warfence.core.errors import DeadHandleError
from warfence.host.own import own_lane
from warfence_jax.compiler import Compiler, Making, on, token_of
from warfence_jax.devices import zeros
from warfence_jax.lanes import JaxLane
from warfence_jax.tables import Cells, Version, check_write
from warfence_jax.tokens import Promise

BUCKETS = (8, 64, 512, 4096)  # cells of one write executable; larger writes are split
NOWHERE = np.iinfo(np.int32).max  # an index that every scatter drops


class DonatedTables:
    """Tables whose writes take the memory over (`warfence.core.backend.SharedTables`).

    donate=False: a write makes a new array instead, whole, and the readers of the old one keep it.
    """

    def __init__(
        self, specs: Mapping[str, ArraySpec], device: Device, compiler: Compiler, *, donate: bool = True
    ) -> None:
        self.specs = specs
        self._donate = donate
        self.held = 0  # writes that a reader held although no wait of the lane covered it: what the fence forgot
        self.refused = 0  # dead handles
        self.copied = 0  # writes whose donation the runtime did not take: safe by copy
        self._device = device
        self._current = {n: Version(n, 0, handle=zeros(s, device)) for n, s in specs.items()}
        self._writes = {
            n: {b: _compile_write(n, s, b, device, compiler, donate) for b in BUCKETS} for n, s in specs.items()
        }

    def capture(self, lane: JaxLane, names: Iterable[str]) -> dict[str, Version]:
        versions = {n: self._current[n] for n in names}
        for version in versions.values():
            if version.promise is not None:
                lane.await_dispatch(version.promise)
        return versions

    def taken(self, version: Version, reader: Promise) -> None:
        version.readers = [*(r for r in version.readers if not r.ready()), reader]

    def write(self, lane: Lane, name: str, cells: Cells, values: Cells) -> None:
        mine = own_lane(lane, JaxLane, name)
        check_write(self.specs, name, cells, values)
        if not len(cells):
            return
        old = self._current[name]
        # What held the write of another lane holds this one as well, through it; an own one was counted then.
        readers = old.readers if old.lane == mine.name else [*old.readers, *old.behind]
        self.held += self._donate and not all(mine.covers(reader) for reader in readers)
        for before in (*old.readers, old.promise) if self._donate else (old.promise,):
            if before is not None:
                mine.await_dispatch(before)
        new = Version(name, old.number + 1)
        new.lane, new.behind = mine.name, tuple(r for r in (*old.readers, *old.behind) if not r.ready())
        new.promise = mine.enqueue(self._device, partial(self._dispatch, old, new, cells, values))
        self._current[name] = new

    def _dispatch(
        self, old: Version, new: Version, cells: np.ndarray, values: np.ndarray, order: Array, wait: Array
    ) -> Array:
        handle = old.handle
        if handle is None:
            raise DeadHandleError(f"write {new.number} of table '{new.table}': the write before it failed")
        for start in range(0, len(cells), BUCKETS[-1]):
            part = slice(start, start + BUCKETS[-1])
            bucket = next(b for b in BUCKETS if b >= len(cells[part]))
            padded = np.full((2, bucket), NOWHERE, np.int32)
            padded[0, : len(cells[part])], padded[1, : len(cells[part])] = cells[part], values[part]
            handle, order = self._writes[new.table][bucket].get()(handle, padded, order, wait)
        new.handle = handle
        self.copied += not old.dead()
        return order

    def executable(self, name: str, bucket: int) -> Compiled:
        """The write of one table for up to `bucket` cells. For tests that read its text."""
        return self._writes[name][bucket].get()

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
        did = {"writes_held": self.held, "writes_copied": self.copied, "refused": self.refused}
        return {"tables": "donated" if self._donate else "copied", "versions": versions, **did}


def _compile_write(name: str, spec: ArraySpec, bucket: int, device: Device, compiler: Compiler, donate: bool) -> Making:
    """The executable that writes up to `bucket` cells: (table, [cells, values], order, wait) -> (table, token)."""

    def write(table: Array, padded: Array, order: Array, wait: Array) -> tuple[Array, Array]:
        written = table.reshape(-1).at[padded[0]].set(padded[1], mode="drop").reshape(table.shape)
        return written, token_of(order, wait, [written])

    scalar = on(device, (), np.int32)
    arguments = [on(device, spec.shape, spec.dtype), on(device, (2, bucket), np.int32), scalar, scalar]
    return compiler.compile(f"write {name} {bucket}", write, arguments, donate=[0] if donate else [])[0]
