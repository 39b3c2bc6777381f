"""A machine whose lanes are worker threads: what each access does is left to the memory of a backend.

Each record is an event of its own, and a wait is for the one that its event holds at the call, as on a device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from warfence.host.lanes import HostEvent, WorkerLane
from warfence.races.replay.gates import StepGates
from warfence.races.replay.machine import Part, Seen, Stand
from warfence.races.scenarios.operations import Op

POLL_S = 1e-3


class Memory(Protocol):
    """The cells of all memories of a trace, and how they are read and written."""

    def bind(self, parts: Sequence[Part], lane: WorkerLane) -> Callable[[], None]:
        """At the call: what the lane's thread then runs. It passes the gate of each part and finishes it."""
        ...

    def host(self, part: Part) -> None:
        """The access of a host thread."""
        ...

    def names(self, op: Op) -> None:
        """The host keeps, views or drops an array."""
        ...

    def settle(self) -> str:
        """See `warfence.races.replay.machine.Machine.settle`, of what the lanes' threads cannot know."""
        ...

    def final(self) -> Mapping[str, tuple[int, ...]]: ...


class HostMachine:
    """Implements `warfence.races.replay.machine.Machine`."""

    def __init__(self, lanes: Iterable[str], gates: StepGates, seen: Seen, memory: Memory) -> None:
        self.gates, self.seen = gates, seen
        self.refusals: list[tuple[int, str]] = []
        self._memory = memory
        self._lanes = {name: WorkerLane(name) for name in lanes}
        self._records: dict[str, list[HostEvent]] = defaultdict(list)
        self._freed: set[str] = set()
        self._done: list[None] = []  # grows by one for each piece of work, whichever thread did it
        self._released = HostEvent()
        self._release = self._released.arm(0)

    def launch(self, lane: str, executables: Sequence[Sequence[Part]]) -> None:
        for parts in executables:
            for part in parts:
                self._check_names(part.op)
            for accesses, record in chunks(parts):
                if accesses:
                    self._submit(self._lanes[lane], accesses)
                if record:
                    self.record(lane, record)

    def host(self, part: Part) -> None:
        self._check_names(part.op)
        self._memory.host(part)

    def record(self, lane: str, event: str) -> None:
        self._records[event].append(self._point(lane))

    def wait(self, lane: str, event: str, launch: int = 0) -> None:
        if records := self._records[event]:
            self._stand(lane, self._at(records[-1]))

    def wait_lane(self, lane: str, other: str) -> None:
        self._stand(lane, self._at(self._point(other)))

    def await_record(self, lane: str, event: str, number: int) -> None:
        records = self._records[event]

        def reached() -> bool:
            return self._released.done() or (len(records) >= number and records[number - 1].done())

        def block() -> None:
            while not reached():  # nobody tells that a record was called, and of a release only its own event does
                self._released.await_generation(self._release, POLL_S)

        self._stand(lane, Stand(reached, block))

    def sync(self, event: str) -> Stand:
        records = self._records[event]
        return self._at(records[-1]) if records else Stand(lambda: True, lambda: None)

    def sync_lane(self, lane: str) -> Stand:
        return self._at(self._point(lane))

    def names(self, op: Op) -> None:
        if op.kind == "frees":
            self._freed.add(op.memory)
        elif op.kind == "allocates":
            self._freed.discard(op.reaches[0].memory)
        else:
            self._memory.names(op)

    def settle(self) -> str:
        for lane in self._lanes.values():
            lane.settle(0)
        return self._memory.settle()

    def count(self) -> int:
        return len(self._done) + self.gates.count()

    def stands(self, lane: str) -> bool:
        return not self._lanes[lane].settle(0)

    def release(self) -> None:
        self.gates.release()
        self._released.complete(self._release)

    def final(self) -> Mapping[str, tuple[int, ...]]:
        return self._memory.final()

    def close(self) -> None:
        self.release()
        for lane in self._lanes.values():
            lane.close()

    def _submit(self, lane: WorkerLane, parts: list[Part]) -> None:
        lane.submit(partial(self._run, parts, self._memory.bind(parts, lane)))

    def _run(self, parts: list[Part], work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.refusals.append((parts[0].call, f"{type(error).__name__}: {error}"))
        finally:
            self._done.append(None)

    def _point(self, lane: str) -> HostEvent:
        """An event for all that is on the lane so far."""
        event = HostEvent()
        generation = event.arm(0)

        def complete() -> None:
            event.complete(generation)
            self._done.append(None)

        self._lanes[lane].submit(complete)
        return event

    def _stand(self, lane: str, stand: Stand) -> None:
        on = self._lanes[lane]
        on.submit(lambda: on.stand(*stand))

    def _at(self, event: HostEvent) -> Stand:
        return Stand(event.done, event.synchronize)

    def _check_names(self, op: Op) -> None:
        for one in op.reaches:
            if one.memory in self._freed:
                raise NameError(f"the block '{one.memory}' is gone: its last name was dropped")


def chunks(parts: Sequence[Part]) -> Iterator[tuple[list[Part], str]]:
    """The accesses of an executable between its records, each with the event that is recorded behind them, or none."""
    accesses: list[Part] = []
    for part in parts:
        if part.op.kind == "records":
            yield accesses, part.op.event
            accesses = []
        else:
            accesses.append(part)
    if accesses:
        yield accesses, ""
