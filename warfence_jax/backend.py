"""The JAX backend: CPU, and a GPU with its tables on the CPU client."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, ShapeDtypeStruct
from jaxtyping import Float32

from warfence.core.abilities import Found
from warfence.core.backend import FORWARD, ArraySpec, Capabilities
from warfence.core.errors import InputError
from warfence.core.gates import HostGates
from warfence.core.modes import Region
from warfence.core.program import ForwardProgram, Gated
from warfence_jax.aliased import AliasedTables
from warfence_jax.clock import Clock
from warfence_jax.compiler import Compiler, on
from warfence_jax.devices import find_devices, zeros
from warfence_jax.donated import DonatedTables
from warfence_jax.executables import Builder
from warfence_jax.fence_word import DonatedWord, HostMemory
from warfence_jax.forward import JaxForward
from warfence_jax.lanes import JaxLane
from warfence_jax.options import choose
from warfence_jax.segments import cut
from warfence_jax.tables import Tables
from warfence_jax.tokens import Joints
from warfence_jax.tools.found import boundary_of
from warfence_jax.tools.timing import JaxTimer

NO_DEVICE_TABLES = "these are not there yet"
UNGUARDED = "aliased tables are host memory that is written in place; only the fence protects them"
ONE_THREAD = (
    "the CPU client runs what one thread dispatches in order: no write overtakes a forward; leave threaded=True"
)


class JaxBackend:
    """Implements `warfence.core.backend.Backend`.

    device: "cpu", or "gpu" = "cuda". tables: "donated" (the runtime guards writes too) or "aliased" (only the fence
    does), or "copied" (each write makes a new array and leaves the old one to its readers: to measure what donation saves).
    marker: "cut" or "word"; ticket: "event" or "value", which follows from the marker (`warfence_jax.options`).
    threaded: each lane dispatches on its own thread. False: in the caller's, which then pays for each dispatch,
    and on a GPU waits for the forward where a barrier is coarse (`warfence_jax.lanes` says why). Gates need threads, so
    the first gated forward starts them.
    """

    name = "jax"

    def __init__(
        self, device: str = "cpu", *, tables: str | None = None, marker: str | None = None, ticket: str | None = None,
        threaded: bool = True,
    ) -> None:  # fmt: skip
        self._options = choose(tables, marker, ticket, NO_DEVICE_TABLES)
        self.devices = find_devices(device)
        self.device = "cuda" if self.devices.split else "cpu"
        self._kind = tables = self._options.tables
        self._threaded = threaded
        if tables == "aliased" and not threaded:
            raise InputError("backend jax: aliased tables are written by a lane's thread; leave threaded=True")
        self.first_count = 0  # of every word; tests begin at the end of the counter
        self._compiler = Compiler()
        self._joints = self._make_joints()
        self._clock = Clock()
        self._lanes: dict[str, JaxLane] = {}
        self._gates: list[HostGates] = []
        self._timer: JaxTimer | None = None
        self._tables: Tables | None = None
        self._params: dict[str, Array] = {}
        self.state: dict[str, Array] = {}
        overlaps = self._threaded or self.devices.split
        reasons = {"guards_writes": UNGUARDED} if tables == "aliased" else {}
        reasons |= {} if overlaps else {"precise_release": ONE_THREAD}
        self.capabilities = Capabilities(
            external_markers=True,
            guards_writes=tables != "aliased",
            gates=True,
            precise_release=overlaps,
            value_tickets=self._options.by_value,
            reasons=reasons,
        )

    @property
    def compilations(self) -> int:
        return self._compiler.compilations

    def lane(self, name: str) -> JaxLane:
        if name not in self._lanes:
            self._lanes[name] = JaxLane(name, self._joints, threaded=self._threaded, on_failure=self._open_gates)
        return self._lanes[name]

    def tables(self, specs: Mapping[str, ArraySpec]) -> Tables:
        device = self.devices.tables
        made: Tables = (
            AliasedTables(specs, device)
            if self._kind == "aliased"
            else DonatedTables(specs, device, self._compiler, donate=self._kind == "donated")
        )
        self._tables = made
        return made

    def load(self, params: Mapping[str, Float32[np.ndarray, "..."]], state: Mapping[str, ArraySpec]) -> None:
        # A copy: the device array must not alias weights that somebody else owns (law 12).
        self._params = {n: jax.device_put(np.array(a), self.devices.compute) for n, a in params.items()}
        self.state.update({n: zeros(s, self.devices.compute) for n, s in state.items()})

    def find_boundary(self, program: ForwardProgram) -> Found:
        """Implements `warfence.core.abilities.FindsBoundary`."""
        if self._tables is None:
            raise InputError("backend jax: make the tables first, then find_boundary() can see who reads them")
        tables = {n: ShapeDtypeStruct(s.shape, s.dtype) for n, s in self._tables.specs.items()}
        state, params = (
            {n: ShapeDtypeStruct(a.shape, a.dtype) for n, a in of.items()} for of in (self.state, self._params)
        )
        return boundary_of(program, tables, state, params)

    def compile(self, program: ForwardProgram, *, marker_after: str | None = None, gated: Gated = False) -> JaxForward:
        if marker_after is not None and program.stages[program.index(marker_after)].region is not Region.REPLAY:
            raise InputError(f"program '{program.name}': the marker's stage '{marker_after}' is not a replay stage")
        gates = HostGates(program.gate_positions(gated)) if gated else None
        if gates is not None:
            self._gates.append(gates)
            self._threaded = True  # a gate blocks whoever dispatches, and that must not be the caller
            for lane in self._lanes.values():
                lane.use_thread()
        specs = self._tables.specs if self._tables is not None else {}
        tables = {n: on(self.devices.tables, s.shape, s.dtype) for n, s in specs.items()}
        # With a gate at every position it is there to be probed, and nobody will run it often.
        builder = Builder(
            program, self._compiler, gates, split=self.devices.split, quick=gated is True, marker_after=marker_after
        )
        executables = [
            builder.build(
                segment,
                self.devices.tables if segment.on_tables else self.devices.compute,
                tables,
                {} if segment.on_tables and self.devices.split else self.state,
                {} if segment.on_tables and self.devices.split else self._params,
            )
            for segment in cut(program, marker_after, gated, self.devices.split, inside=self._options.by_value)
        ]
        word = memory = None
        if self._options.by_value and marker_after is not None:
            word = DonatedWord(program.name, self.devices.compute, self.first_count)
            memory = HostMemory(word.address, program.name)
        lane = self.lane(FORWARD)
        lane.after(
            lambda: [executable.compiled for executable in executables]
        )  # so that who waits for the lane waits for it
        make = JaxForward if self._timer is None else self._timer.forward
        return make(
            program, lane, self._tables, self.state, executables, marker_after, gates, self._clock, word, memory
        )

    def time_stages(self) -> JaxTimer:
        """Implements `warfence.core.abilities.TimesStages`."""
        self._timer = JaxTimer()
        return self._timer

    def state_to_host(self, name: str) -> np.ndarray:
        self.lane(FORWARD).synchronize()
        return np.array(jnp.copy(self.state[name]))

    def report(self) -> Mapping[str, object]:
        sizes = {"params": self._params, "state": self.state}
        bytes_of = {f"{kind}_bytes": sum(a.nbytes for a in made.values()) for kind, made in sizes.items()}
        specs = self._tables.specs if self._tables is not None else {}
        bytes_of["tables_bytes"] = sum(4 * int(np.prod(s.shape)) for s in specs.values())
        copied = self._compiler.copied()
        donation = f"safe by copy: {', '.join(copied)}" if copied else "in place"
        return {
            "jax": jax.__version__,
            "donation": donation,
            **(self._tables.report() if self._tables else {}),
            **bytes_of,
        }

    def close(self) -> None:
        self._open_gates()
        for lane in self._lanes.values():
            lane.close()
        self._clock.close()
        if self._timer is not None:
            self._timer.close()

    def _open_gates(self) -> None:
        for gates in self._gates:
            gates.abort()

    def _make_joints(self) -> Joints:
        devices = self.devices.all()
        zero = {d: jax.device_put(np.int32(0), d) for d in devices}
        scalars = {d: [on(d, (), np.int32)] * 2 for d in devices}
        joins = {d: self._compiler.compile("join", lambda a, b: a + b, scalars[d])[0].get() for d in devices}
        return Joints(self.devices.tables, zero, joins)
