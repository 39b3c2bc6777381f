"""The host threads of a scenario, each a thread of its own, which make their calls on a machine."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

from warfence.core.fence import Mailbox, Ticket
from warfence.host.lanes import WorkerLane
from warfence.races.replay.machine import Machine, Stand
from warfence.races.replay.parts import parts_of
from warfence.races.scenarios.interleave import dependent
from warfence.races.scenarios.operations import Op
from warfence.races.scenarios.program import HOST
from warfence.races.scenarios.trace import Trace


class Hosts:
    """Makes the calls of a trace. Calls of two threads are made in the trace's order where they depend on each other."""

    def __init__(self, trace: Trace, machine: Machine) -> None:
        self._ops, self._machine = trace.ops, machine
        self._parts = parts_of(trace)
        self._threads = {name: WorkerLane(name) for name in dict.fromkeys(op.thread for op in trace.ops)}
        self._made = [False] * len(trace.ops)
        self._changed = threading.Condition()
        self._mailboxes: dict[str, Mailbox] = {}
        self._released = threading.Event()
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
        op, thread = self._ops[call], self._threads[self._ops[call].thread]
        thread.stand(lambda: self._all_made(before), lambda: self._await(before))
        stand: Stand | None = None
        try:
            if not self.refusals:
                stand = self._make(call, op, thread)
        except Exception as error:  # whatever a runtime refuses a call with
            self.refusals.append((call, f"{type(error).__name__}: {error}"))
        with self._changed:
            self._made[call] = True
            self._changed.notify_all()
        if stand is not None:
            thread.stand(*stand)

    def _make(self, call: int, op: Op, thread: WorkerLane) -> Stand | None:
        machine, parts = self._machine, self._parts[call]
        match op.kind:
            case "access" if op.lane == HOST:
                machine.gates.pass_through(parts[0][0].id, thread.stand)
                machine.host(parts[0][0])
                machine.gates.finish(parts[0][0].id)
            case "allocates" if op.lane == HOST:
                machine.gates.pass_through(parts[0][0].id, thread.stand)
                machine.names(op)
                machine.gates.finish(parts[0][0].id)
            case "allocates":
                machine.names(op)
                machine.launch(op.lane, parts)
            case "access" | "launch":
                machine.launch(op.lane, parts)
            case "records":
                machine.record(op.lane, op.event)
            case "syncs" | "polls":
                return machine.sync(op.event) if op.event else machine.sync_lane(op.other)
            case "waits":
                self._wait(op, op.event)
            case "awaits":
                machine.await_record(op.lane, op.event, op.number)
            case "receives":
                return self._receive(op)
            case "publishes" | "takes" | "clears":
                self._mail(op)
            case _:
                machine.names(op)
        return None

    def _wait(self, op: Op, event: str) -> None:
        if event:
            self._machine.wait(op.lane, event)
        elif op.other:
            self._machine.wait_lane(op.lane, op.other)

    def _mail(self, op: Op) -> None:
        mailbox = self._mailboxes.setdefault(op.mailbox, Mailbox(op.mailbox))
        if op.kind == "publishes":
            mailbox.publish(Ticket(op.launch, _Named(op.event, op.launch)))
        elif op.kind == "clears":
            mailbox.clear()
        else:
            ticket = mailbox.take()
            self._wait(op, ticket.source.event if ticket and isinstance(ticket.source, _Named) else "")

    def _receive(self, op: Op) -> Stand | None:
        """A full mailbox is emptied. Into an empty one nobody will publish any more, so the thread stands."""
        ticket = self._mailboxes.setdefault(op.mailbox, Mailbox(op.mailbox)).take()
        return None if ticket else Stand(self._released.is_set, self._released.wait)

    def _all_made(self, calls: Sequence[int]) -> bool:
        return all(self._made[one] for one in calls)

    def _await(self, calls: Sequence[int]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._all_made(calls))


class _Named:
    """A ticket source that only says which event it is."""

    def __init__(self, event: str, launch: int) -> None:
        self.event, self._launch = event, launch

    def recorded_for(self) -> int | None:
        return self._launch

    def done(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nobody waits for a name."""
