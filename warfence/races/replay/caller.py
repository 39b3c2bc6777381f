"""Makes the calls of a trace on a machine: one at a time for the threads of a forced order, or all of them in turn."""

from __future__ import annotations

from collections.abc import Callable

from warfence.core.fence import Mailbox, Ticket
from warfence.races.replay.gates import StandAt
from warfence.races.replay.machine import Lanes, Stand
from warfence.races.replay.parts import parts_of
from warfence.races.scenarios.operations import Op
from warfence.races.scenarios.program import HOST
from warfence.races.scenarios.steps import Trace

ASKED = (
    10_000  # times that a host which polls asks in vain before it blocks: somebody's time may stand while it only asks
)


class Caller:
    """The calls of one trace, and the mailboxes that they use. `never`: blocks a thread that receives what never comes."""

    def __init__(self, trace: Trace, machine: Lanes, never: Stand) -> None:
        self._ops, self._machine, self._never = trace.ops, machine, never
        self._parts = parts_of(trace)
        self._mailboxes: dict[str, Mailbox] = {}

    def make(self, call: int, stand: StandAt) -> Stand | None:
        """Make one call. Returns where its thread then has to stand. Raises what the runtime refuses it with."""
        op, machine, parts = self._ops[call], self._machine, self._parts[call]
        match op.kind:
            case "access" | "allocates" if op.lane == HOST:
                machine.gates.pass_through(parts[0][0].id, stand)
                if op.kind == "access":
                    machine.host(parts[0][0])
                else:
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
                return None if self._mailbox(op).take() else self._never
            case "publishes" | "takes" | "clears":
                self._mail(op)
            case _:
                machine.names(op)
        return None

    def _wait(self, op: Op, event: str) -> None:
        if event:
            self._machine.wait(op.lane, event, op.launch)
        elif op.other:
            self._machine.wait_lane(op.lane, op.other)

    def _mail(self, op: Op) -> None:
        mailbox = self._mailbox(op)
        if op.kind == "publishes":
            mailbox.publish(Ticket(op.launch, _Named(op.event, op.launch)))
        elif op.kind == "clears":
            mailbox.clear()
        else:
            ticket = mailbox.take()
            self._wait(op, ticket.source.event if ticket and isinstance(ticket.source, _Named) else "")

    def _mailbox(self, op: Op) -> Mailbox:
        return self._mailboxes.setdefault(op.mailbox, Mailbox(op.mailbox))


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


def call_all(trace: Trace, machine: Lanes) -> None:
    """All calls in their order, by this thread, which blocks where the program does. The gates of the machine are open."""
    caller = Caller(trace, machine, Stand(lambda: True, lambda: None))
    for call, op in enumerate(trace.ops):
        stand = caller.make(call, _at_once)
        if stand is not None and not (op.kind == "polls" and any(stand.reached() for _ in range(ASKED))):
            stand.block()


def _at_once(reached: Callable[[], bool], block: Callable[[], object]) -> None:
    if not reached():
        block()
