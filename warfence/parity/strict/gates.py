"""Gates in virtual time. A closed gate makes its lane unable to move; whether a forward can get there is known exactly."""

from __future__ import annotations

from collections.abc import Iterable

from warfence.core.errors import FenceError, InputError
from warfence.core.gates import WATCHDOG_S
from warfence.parity.strict.machine import Item, Machine, Queue
from warfence.races.check.events import Event


class StrictGates:
    """Implements `warfence.core.gates.Gates`. Needs no watchdog: who would hang is refused instead."""

    def __init__(self, program: str, positions: Iterable[str], machine: Machine, queue: Queue) -> None:
        self.positions = tuple(positions)
        self._program, self._machine, self._queue = program, machine, queue
        self._closed: set[str] = set()
        self._ahead: dict[str, list[int]] = {p: [] for p in self.positions}  # launches issued and not yet past it

    def close(self, position: str) -> None:
        self._check(position)
        if ahead := self._ahead[position]:
            raise FenceError(
                f"'{self._program}': the gate at '{position}' was to be closed while launch {ahead[0]} is between its "
                f"issue and this gate; close it before the launch is issued, or once the forward is past it"
            )
        self._closed.add(position)

    def open(self, position: str) -> None:
        self._check(position)
        self._closed.discard(position)

    def open_all(self) -> None:
        self._closed.clear()

    def await_reached(self, position: str, timeout_s: float = WATCHDOG_S) -> None:
        """Drives until the forward stands there. FenceError when it cannot get there; the timeout is not used."""
        self._check(position)
        if position not in self._closed:
            raise FenceError(
                f"'{self._program}': nobody ever stands at the gate at '{position}', which is open; close it before the "
                f"launch is issued"
            )
        self._machine.drive(
            lambda: self._stands_at(position) or self._queue.failure is not None,
            f"'{self._program}': await_reached('{position}')",
        )
        self._machine.check(self._queue)

    # -- for the forward

    def item(self, position: str, launch: int) -> Item:
        """The gate as the forward lane meets it."""
        return Item(
            (Event("gate", self._queue.name, launch, position),), run=lambda: self.passed(position, launch),
            ready=lambda: position not in self._closed, holds=f"the closed gate at '{position}' of '{self._program}'",
            gate=(self, position),
        )  # fmt: skip

    def issued(self, launch: int) -> None:
        """A launch was issued: it is in front of every gate."""
        for ahead in self._ahead.values():
            ahead.append(launch)

    def passed(self, position: str, launch: int) -> None:
        """A launch is past this gate, or was given up before it was issued that far."""
        if launch in self._ahead[position]:
            self._ahead[position].remove(launch)

    def abort(self) -> None:
        """The forward failed: nobody reaches a gate any more."""
        self.open_all()
        for ahead in self._ahead.values():
            ahead.clear()

    def _stands_at(self, position: str) -> bool:
        items = self._queue.items
        return bool(items) and items[0].gate == (self, position)

    def _check(self, position: str) -> None:
        self._machine.check_open()
        if position not in self._ahead:
            raise InputError(f"no gate at '{position}'; gates: {', '.join(self.positions)}")
