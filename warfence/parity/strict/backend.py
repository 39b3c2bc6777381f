"""The strict reference backend: the interface taken at its word. Suites are tried on it first.

Nothing runs when it is enqueued. Things run only while the host blocks, and then in the worst order that the waits
permit (`warfence.parity.strict.machine`): writes at once, the forward as late as may be. So a fence that is missing, or
one stage too early, shows in the text at once and every time, without gates and without a forced order.

It hides nothing that the interface leaves open:
- released memory is poisoned. What the interface releases is the workspace of a launch, once its outputs are taken: NaN,
  or the least integer. Tables and state start at zero by contract, and which cells or KV slots are free is known to the
  scheduler alone, so those keep their values: a freed row holds its next owner's slots the moment that is permitted;
- a batch is read in place until its launch is over, the arrays of a write until it lands;
- stages get tables, weights and each other's values read-only, and may not hand on a view of what others write.

And it refuses what the interface does not promise. The tests in `tests/parity/suite` list the refusals.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float32

from warfence.core.backend import FORWARD, PLAN, SCHEDULE, ArraySpec, Capabilities
from warfence.core.errors import FenceError, InputError
from warfence.core.modes import Region, check_ticket
from warfence.core.program import START, ForwardProgram, Gated
from warfence.parity.kernels import KERNELS, Array, Kernel
from warfence.parity.strict.forward import StrictForward
from warfence.parity.strict.lanes import StrictLane, StrictWord
from warfence.parity.strict.launch import frozen, poison
from warfence.parity.strict.machine import ADVERSARIES, Machine
from warfence.parity.strict.tables import StrictTables
from warfence.parity.strict.timing import StrictTimer
from warfence.races.check.events import Event

LANES = (SCHEDULE, FORWARD, PLAN)


class StrictBackend:
    """Implements `warfence.core.backend.Backend`.

    external_markers=False: no marker can be made, so that the policy degrades. adversary: "war" (writes early, forward
    late: shows a missing WAR fence) or "raw" (forward early, writes late: shows a missing wait for the plan's writes).
    ticket: in-graph tickets "event" or "value"; by value, words begin at `first_count`.
    kernels: the ops that stages may name.
    """

    name = "strict"

    def __init__(
        self, device: str = "cpu", *, external_markers: bool = True, adversary: str = "war",
        kernels: Mapping[str, Kernel] = KERNELS, ticket: str = "event", first_count: int = 0,
    ) -> None:  # fmt: skip
        if device != "cpu":
            raise InputError(f"backend strict: unknown device '{device}'; it has only: cpu")
        if adversary not in ADVERSARIES:
            raise InputError(
                f"backend strict: unknown adversary '{adversary}'; choose one of: {', '.join(ADVERSARIES)}"
            )
        check_ticket("strict", ticket)
        self.device = device
        self.compilations = 0
        self._by_value, self._first_count = ticket == "value", first_count
        reasons = {"guards_writes": "tables are written in place; only the fence protects them"}
        reasons |= {} if external_markers else {"external_markers": "switched off"}
        self.capabilities = Capabilities(
            external_markers=external_markers, guards_writes=False, gates=True, precise_release=True,
            value_tickets=self._by_value and external_markers, reasons=reasons,
        )  # fmt: skip
        self._machine = Machine(adversary)
        self._kernels = kernels
        self._lanes: dict[str, StrictLane] = {}
        self._tables: StrictTables | None = None
        self._params: dict[str, Array] | None = None
        self._state: dict[str, Array] = {}

    @property
    def log(self) -> list[Event]:
        """All that has happened so far, in order. It goes on growing; it is there after close() too.

        A wait stands in it where it is over, as an `await` of the record that it was bound to at its call. launch: of a write
        the one issued last before it was enqueued, so all launches up to this one are earlier. Law 1 is a sentence about it:
        for every write of launch L, every read of its table by a launch of at most L stands before it.
        """
        return self._machine.log

    def lane(self, name: str) -> StrictLane:
        self._machine.check_open()
        if name not in LANES:
            raise InputError(f"no lane '{name}'; lanes: {', '.join(LANES)}")
        return self._lanes.setdefault(name, StrictLane(name, self._machine))

    def tables(self, specs: Mapping[str, ArraySpec]) -> StrictTables:
        self._once("tables", self._tables is not None)
        self._tables = StrictTables(specs, self._machine)
        return self._tables

    def load(self, params: Mapping[str, Float32[np.ndarray, "..."]], state: Mapping[str, ArraySpec]) -> None:
        self._once("load", self._params is not None)
        for name, array in params.items():
            if array.dtype != np.float32:
                raise InputError(f"weight '{name}' is {array.dtype}; weights are float32")
        self._params = {n: frozen(array.copy()) for n, array in params.items()}
        self._state = {n: np.zeros(spec.shape, spec.dtype) for n, spec in state.items()}

    def compile(
        self, program: ForwardProgram, *, marker_after: str | None = None, gated: Gated = False
    ) -> StrictForward:
        self._machine.check_open()
        if self._tables is None or self._params is None:
            missing = "tables()" if self._tables is None else "load()"
            raise FenceError(
                f"compile of '{program.name}' before {missing}: call tables(), then load(), then compile()"
            )
        if marker_after is not None:
            known = marker_after != START and program.stages[program.index(marker_after)].region is Region.REPLAY
            if not known:
                replay = ", ".join(stage.name for stage in program.region(Region.REPLAY))
                raise InputError(
                    f"program '{program.name}': a marker after '{marker_after}' cannot be planted, which is no replay "
                    f"stage; replay stages: {replay}"
                )
        marker = marker_after if self.capabilities.external_markers else None
        tables = {n: frozen(array) for n, array in self._tables.arrays.items()}
        fixed = {**self._params, **self._state, **tables}
        lane = self.lane(FORWARD)
        self.compilations += 1
        word = StrictWord(self._machine, self._first_count) if self._by_value else None
        return StrictForward(program, self._machine, lane.queue, fixed, self._kernels, marker, gated, word)

    def time_stages(self) -> StrictTimer:
        """Implements `warfence.core.abilities.TimesStages`."""
        return StrictTimer(self._machine)

    def state_to_host(self, name: str) -> np.ndarray:
        if name not in self._state:
            raise InputError(f"no state '{name}'; state: {', '.join(self._state) or 'none, call load() first'}")
        self.lane(FORWARD).synchronize()
        return self._state[name].copy()

    def report(self) -> Mapping[str, object]:
        arrays = {
            "params": self._params or {},
            "state": self._state,
            "tables": self._tables.arrays if self._tables is not None else {},
        }
        sizes = {f"{kind}_bytes": sum(a.nbytes for a in made.values()) for kind, made in arrays.items()}
        return {
            "numpy": np.__version__, "donation": "none: written in place", "refused": 0,
            "adversary": self._machine.adversary, "virtual_time": len(self._machine.steps), **sizes,
        }  # fmt: skip

    def close(self) -> None:
        """Drops what has not run, and poisons tables and state: whoever kept an array of this backend sees it."""
        if self._machine.closed:
            return
        self._machine.closed = True
        for array in (*self._state.values(), *(self._tables.arrays.values() if self._tables is not None else ())):
            poison(array)

    def _once(self, name: str, made: bool) -> None:
        self._machine.check_open()
        if made:
            raise FenceError(f"{name}() was called twice; call it once, before compile()")
