"""Real lanes as a judge: every order that could go wrong is forced, and what is seen is the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from warfence.core.errors import FenceError
from warfence.races.replay.driver import Driver
from warfence.races.replay.machine import Machines
from warfence.races.replay.plan import Attempt, attempts
from warfence.races.replay.registry import machines
from warfence.races.scenarios.explore import Outcome


class Lanes:
    """Implements `warfence.races.sweep.judges.LaneJudge`. name: of the backend and its device, such as `torch/cpu`."""

    def __init__(self, machines: Machines) -> None:
        self.name = machines.name
        self._machines = machines

    def verdict(self, outcome: Outcome) -> str:
        """ok, bad, cycle or error; `stuck` when a watchdog had to help.

        Empty where the backend cannot express the program, or where the runtime itself held back what would have gone wrong.
        """
        if self._machines.lacks(outcome.trace):
            return ""
        seen = {self._seen(attempt) for attempt in attempts(outcome)}
        return next(one for one in ("stuck", "error", "cycle", "bad", "", "ok") if one in seen)

    def _seen(self, attempt: Attempt) -> str:
        try:
            observed = Driver(attempt, self._machines.make(attempt.trace, attempt.memories)).run()
        except FenceError:
            return "stuck"
        if observed.refused and attempt.trace.ops[observed.refused[0]].thread not in observed.standing:
            return "error"  # and not a call that is only made because all who stand are released in the end
        if observed.stood is not None and self._machines.guards:
            return ""
        if observed.standing:
            return "cycle"
        if observed.differences or (observed.ran and _conflict(attempt)):
            return "bad"
        return "ok"


def lane_judges(backend: str, device: str) -> Sequence[Lanes]:
    """The lanes of one backend: more than one where it keeps tables in more than one way. InputError: see `machines`."""
    return [Lanes(one) for one in machines(backend, device)]


def _conflict(attempt: Attempt) -> bool:
    """Whether the two accesses that were tried in the wrong order touch the same cell, one of them writing."""
    if attempt.held is None or attempt.tried is None:
        return False
    held, tried = (attempt.trace.steps[one] for one in (attempt.held, attempt.tried))
    return any(
        a.memory == b.memory and a.begin < b.end and b.begin < a.end and {a.verb, b.verb} != {"reads"}
        for a in held.reaches
        for b in tried.reaches
    )
