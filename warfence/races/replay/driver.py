"""Drives one attempt on a machine: issues the calls in host order, and opens the gates in the order of the attempt.

A gate is opened only after the step before it has run. "It stands" is concluded from lanes that are known to stand at a wait
or a gate; where only the runtime knows (a donation, a device), from a bound: a multiple of the longest time that
a step of this run took to land. A watchdog lets everybody go when a run takes too long, so that nothing ever hangs.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from warfence.core.errors import FenceError
from warfence.core.gates import WATCHDOG_S
from warfence.host.landing import bound_s
from warfence.races.replay.hosts import Hosts
from warfence.races.replay.machine import Machine
from warfence.races.replay.plan import Attempt
from warfence.races.replay.values import WrongCell, differences, place

POLL_S = 50e-6
MOST_BOUND_S = 0.25  # on a busy machine a first step may take long for other reasons


@dataclass(frozen=True, slots=True)
class Ran:
    """One access of a run, in seconds since its start. stood: until when it did not run though its gate was open."""

    step: int
    opened: float
    ended: float
    stood: float | None = None


@dataclass(frozen=True)
class Observed:
    """What one run showed. ran: the tried access ran while the other one stood at its gate. stood: a step that stood although
    nothing in the program holds it. standing: lanes and host threads that could not go on in the end.
    refused: (call, message), where the runtime refused a call. times: of every access that ran, in the order they ended.
    """

    ran: bool | None
    stood: int | None
    standing: tuple[str, ...]
    refused: tuple[int, str] | None
    differences: tuple[WrongCell, ...]
    times: tuple[Ran, ...] = ()


class Driver:
    """One machine, for one attempt."""

    def __init__(self, attempt: Attempt, machine: Machine) -> None:
        self._attempt, self._machine = attempt, machine
        self._hosts = Hosts(attempt.trace, machine)
        self._landing_s = 0.0
        self._fired = False
        self._start = time.perf_counter()
        self._opened: dict[int, float] = {}  # when the gate of each access was opened
        self._ended: dict[int, float] = {}  # and when it was seen to have run
        self._stood: dict[int, float] = {}  # until when it is known to have stood

    def run(self) -> Observed:
        """Force the attempt. FenceError: the watchdog had to open the gates."""
        attempt, machine = self._attempt, self._machine
        watchdog = threading.Timer(WATCHDOG_S, self._bark)
        watchdog.daemon = True
        watchdog.start()
        try:
            self._hosts.start()
            ran, stood = self._try()
            for step in attempt.rest:
                if not machine.gates.finished(step):
                    self._runs(step)
            self._quiet()
            standing = self._standing()
            self._release()
            self._quiet()
            wrong = self._differences() if not standing and not self.refused else []
        finally:
            watchdog.cancel()
            self._release()
            self._hosts.close()
            machine.close()
        if self._fired:
            raise FenceError(f"the lanes did not come to rest within {WATCHDOG_S} s, so the watchdog opened all gates")
        return Observed(ran, stood, standing, self.refused, tuple(wrong), self._times())

    def _times(self) -> tuple[Ran, ...]:
        ended = sorted(self._ended.items(), key=lambda pair: pair[1])
        return tuple(Ran(step, self._opened.get(step, end), end, self._stood.get(step)) for step, end in ended)

    def _note(self) -> None:
        """Which of the opened accesses have run by now, and which still stand."""
        now = time.perf_counter() - self._start
        for step in self._opened:
            if step in self._ended:
                continue
            if self._machine.gates.finished(step):
                self._ended[step] = now
            elif step in self._stood:
                self._stood[step] = now

    def _differences(self) -> list[WrongCell]:
        machine, trace = self._machine, self._attempt.trace
        left = [place(trace.steps[one]) for one in self._attempt.rest if not machine.gates.finished(one)]
        if left and not self._fired:
            raise FenceError(f"with all gates open {left[0]} has not run, although no lane stands")
        return differences(trace, machine.seen, machine.final())

    @property
    def refused(self) -> tuple[int, str] | None:
        """The first call that the runtime refused."""
        return min([*self._hosts.refusals, *self._machine.refusals], default=None)

    def _try(self) -> tuple[bool | None, int | None]:
        attempt = self._attempt
        if attempt.tried is None:
            return None, None
        for step in attempt.first:
            if not self._runs(step):
                return False, step
        for step in attempt.behind:
            self._open(step)
        ran = self._runs(attempt.tried)
        return ran, attempt.tried if attempt.passes and not ran else None

    def _runs(self, step: int) -> bool:
        """Open one gate. True once the access has run, False when it stands."""
        start = time.perf_counter()
        self._open(step)
        self._quiet(step)
        if not self._machine.gates.finished(step):
            self._stood[step] = time.perf_counter() - self._start
            return False
        self._landing_s = max(self._landing_s, time.perf_counter() - start)
        return True

    def _open(self, step: int) -> None:
        self._opened.setdefault(step, time.perf_counter() - self._start)
        self._machine.gates.open(step)

    def _quiet(self, step: int | None = None) -> None:
        """Block until this access has run, or nobody goes on any more."""
        self._come_to_rest(step)
        self._note()

    def _come_to_rest(self, step: int | None) -> None:
        most_s = min(bound_s(self._landing_s), MOST_BOUND_S)
        seen, since = -1, time.perf_counter()
        while not self._fired and (step is None or not self._machine.gates.finished(step)):
            self._hosts.settle()
            certain = self._machine.settle()
            count = self._machine.count() + self._hosts.count()
            if count != seen:
                seen, since = count, time.perf_counter()
            elif not certain or (certain == "runtime" and time.perf_counter() - since > most_s):
                return
            else:
                time.sleep(POLL_S)

    def _standing(self) -> tuple[str, ...]:
        lanes = dict.fromkeys(op.lane for op in self._attempt.trace.ops if op.lane not in ("host", ""))
        return (*(lane for lane in lanes if self._machine.stands(lane)), *self._hosts.standing())

    def _release(self) -> None:
        self._machine.release()
        self._hosts.release()

    def _bark(self) -> None:
        self._fired = True
        self._release()
