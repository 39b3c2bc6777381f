"""The host threads of a scenario, each a thread of its own, which make their calls on a machine."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

from warfence.host.lanes import WorkerLane
from warfence.races.replay.caller import Caller
from warfence.races.replay.machine import Machine, Stand
from warfence.races.scenarios.interleave import dependent
from warfence.races.scenarios.steps import Trace


class Hosts:
    """Makes the calls of a trace. Calls of two threads are made in the trace's order where they depend on each other."""

    def __init__(self, trace: Trace, machine: Machine) -> None:
        self._ops = trace.ops
        self._threads = {name: WorkerLane(name) for name in dict.fromkeys(op.thread for op in trace.ops)}
        self._made = [False] * len(trace.ops)
        self._changed = threading.Condition()
        self._released = threading.Event()
        # into an empty mailbox nobody will publish any more, so whoever receives from it stands
        self._caller = Caller(trace, machine, Stand(self._released.is_set, self._released.wait))
        self.refusals: list[tuple[int, str]] = []

    def start(self) -> None:
        """All calls, each as soon as it can be made."""
        for call, op in enumerate(self._ops):
            before = [
                other
                for other in range(call)
                if self._ops[other].thread != op.thread and dependent(self._ops[other], op)
            ]
            self._threads[op.thread].submit(partial(self._call, call, before))

    def settle(self) -> None:
        """Block until each thread is through, or stands."""
        for thread in self._threads.values():
            thread.settle(0)

    def count(self) -> int:
        return sum(self._made)

    def standing(self) -> list[str]:
        return [name for name, thread in self._threads.items() if not thread.settle(0)]

    def release(self) -> None:
        """Let threads go that receive what never comes."""
        self._released.set()

    def close(self) -> None:
        self.release()
        for thread in self._threads.values():
            thread.close()

    def _call(self, call: int, before: Sequence[int]) -> None:
        thread = self._threads[self._ops[call].thread]
        thread.stand(lambda: self._all_made(before), lambda: self._await(before))
        stand: Stand | None = None
        try:
            if not self.refusals:
                stand = self._caller.make(call, thread.stand)
        except Exception as error:  # whatever a runtime refuses a call with
            self.refusals.append((call, f"{type(error).__name__}: {error}"))
        with self._changed:
            self._made[call] = True
            self._changed.notify_all()
        if stand is not None:
            thread.stand(*stand)

    def _all_made(self, calls: Sequence[int]) -> bool:
        return all(self._made[one] for one in calls)

    def _await(self, calls: Sequence[int]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._all_made(calls))
