"""The shared tables of the strict backend: written in place when the lane is there, and checked when enqueued."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Int32

from warfence.core.backend import ArraySpec, Lane
from warfence.core.errors import FenceError, InputError
from warfence.parity.kernels import Array
from warfence.parity.strict.lanes import StrictLane
from warfence.parity.strict.machine import Item, Machine
from warfence.races.check.events import Event
from warfence.races.check.runs import runs


class StrictTables:
    """Implements `warfence.core.backend.SharedTables`."""

    def __init__(self, specs: Mapping[str, ArraySpec], machine: Machine) -> None:
        for name, spec in specs.items():
            if spec.dtype != "int32":
                raise InputError(f"table '{name}' is {spec.dtype}; shared tables are int32")
        self.arrays: dict[str, Array] = {n: np.zeros(spec.shape, np.int32) for n, spec in specs.items()}
        self._machine = machine

    def write(self, lane: Lane, name: str, cells: Int32[np.ndarray, " n"], values: Int32[np.ndarray, " n"]) -> None:
        table = self._table(name)
        if not isinstance(lane, StrictLane) or lane.machine is not self._machine:
            raise FenceError(f"table '{name}' was to be written on lane '{lane.name}' of another backend")
        for what, array in (("cells", cells), ("values", values)):
            if not isinstance(array, np.ndarray) or array.dtype != np.int32 or array.ndim != 1:
                seen = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
                raise InputError(f"write to table '{name}': {what} are {seen}; give one int32 vector")
        if len(cells) != len(values):
            raise InputError(f"write to table '{name}': {len(cells)} cells but {len(values)} values; give one for each")
        outside = cells[(cells < 0) | (cells >= table.size)]
        if outside.size:
            raise InputError(
                f"write to table '{name}': cell {outside[0]} is outside; the table has {table.size} cells "
                f"{list(table.shape)}, counted from 0"
            )
        seen_cells, counts = np.unique(cells, return_counts=True)
        if (counts > 1).any():
            raise InputError(
                f"write to table '{name}': cell {seen_cells[counts > 1][0]} occurs twice, and which value stays depends "
                f"on the device; merge the writes first"
            )
        as_given = cells.copy(), values.copy()

        def land() -> None:
            if not (np.array_equal(cells, as_given[0]) and np.array_equal(values, as_given[1])):
                raise FenceError(
                    f"write to table '{name}': its arrays were changed between write() and its landing; a lane may "
                    f"read them until then, so give fresh arrays to every write"
                )
            table.flat[cells] = values

        which = lane.name, self._machine.launch, f"write {name}"
        writes = tuple(Event("write", *which, name, begin, end) for begin, end in runs(cells))
        self._machine.enqueue(lane.queue, Item(writes or (Event("stage", *which),), land))

    def snapshot_to_host(self, name: str) -> Int32[np.ndarray, "rows cols"]:
        table = self._table(name)
        self._machine.drive(lambda: not self._pending(name), f"snapshot_to_host('{name}')")
        for queue in self._machine.queues.values():
            self._machine.check(queue)
        return table.copy()

    def _pending(self, name: str) -> bool:
        """Whether a write to this table has not landed."""
        queues = self._machine.queues.values()
        return any(
            item.events[0].kind == "write" and item.events[0].resource == name
            for queue in queues
            for item in queue.items
        )

    def _table(self, name: str) -> Array:
        self._machine.check_open()
        if name not in self.arrays:
            raise InputError(f"no table '{name}'; tables: {', '.join(self.arrays) or 'none'}")
        return self.arrays[name]
